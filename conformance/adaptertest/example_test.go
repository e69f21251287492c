package adaptertest_test

import (
	"bufio"
	"errors"
	"fmt"
	"mime/multipart"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/reprise-go/reprise/conformance/adaptertest"
	"github.com/reprise-go/reprise/conformance/adaptertest/testapp"
	"github.com/reprise-go/reprise/core/protocol"
)

// Middleware runs the handlers inside it once for each key.
func Middleware(guard *protocol.Guard, scope func(*http.Request) (string, error)) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			admission := guard.Admit(r.Context(), request(r), func() (string, error) { return scope(r) })
			switch {
			case admission.Pass:
				if admission.Body != nil {
					r.Body = admission.Body
				}
				next.ServeHTTP(w, r)
			case admission.Exchange != nil:
				run(w, r, admission.Exchange, next)
			default:
				admission.Response.Write(w.Header(), w)
			}
		})
	}
}

func run(w http.ResponseWriter, r *http.Request, x *protocol.Exchange, next http.Handler) {
	recorder := &writer{behind: w}
	recorder.Start(x, w.Header(), w, http.DetectContentType)
	defer recorder.Close() // also if next panics
	inner := r.WithContext(x.Context())
	inner.Body = x.Body()
	next.ServeHTTP(recorder, inner)
	recorder.Finish()
}

func request(r *http.Request) protocol.Request {
	return protocol.Request{
		Method: r.Method, Target: r.RequestURI, Path: r.URL.EscapedPath(), RawQuery: r.URL.RawQuery,
		Host: r.Host, Header: r.Header, HTTP10: r.ProtoMajor == 1 && r.ProtoMinor == 0, HTTP2: r.ProtoMajor >= 2,
		Body: r.Body, Length: r.ContentLength, Parsed: parsed{r},
		TooLarge: func(err error) bool {
			var limit *http.MaxBytesError
			return errors.As(err, &limit)
		},
	}
}

// parsed is what a layer outside left of a body that it consumed.
type parsed struct{ r *http.Request }

func (p parsed) ParsedForm() *multipart.Form { return p.r.MultipartForm }
func (p parsed) ParsedBytes() []byte         { return nil }

// writer is the http.ResponseWriter of a handler, whose methods WriteHeader, Write,
// WriteString and ReadFrom are those of the Recorder.
type writer struct {
	protocol.Recorder

	behind http.ResponseWriter
}

func (w *writer) Header() http.Header { return w.behind.Header() }

// FlushError is called by http.ResponseController.
func (w *writer) FlushError() error {
	if !w.Recorder.Flush() {
		return nil
	}
	return w.FlushFailed(http.NewResponseController(w.behind).Flush())
}

func (w *writer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(w.behind).Hijack()
	if err == nil {
		w.Recorder.Hijack()
	}
	return conn, rw, err
}

// A test of an adapter is a call of Run for each store.
func ExampleRun() {
	testAdapter := func(t *testing.T) {
		adaptertest.Run(t, testapp.OverMemory(testapp.NetHTTP(Middleware)))
	}
	_ = testAdapter // call it TestAdapter, in a package of tests
}

// The page shows the adapter of this file, which passes every case.
func TestThePageShowsThisAdapter(t *testing.T) {
	t.Parallel()
	adaptertest.Run(t, testapp.OverMemory(testapp.NetHTTP(Middleware)))
	code, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../docs/guides/adapter.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(code), ")\n\n// Middleware runs")
	text, _, found := strings.Cut(text, "\n// A test of an adapter")
	if !found || !strings.Contains(string(page), "```go\n// Middleware runs"+text+"```\n") {
		t.Errorf("docs/guides/adapter.md does not show this adapter:\n%s", text)
	}
}

// Cases are the rules that an adapter is held to; each is a subtest.
func ExampleCases() {
	first := adaptertest.Cases()[0]
	fmt.Println(first.ID)
	fmt.Println(first.Rule)
	fmt.Println(first.Source)
	// Output:
	// R1e
	// A request without a key is passed on before its body arrives: only the handler reads it.
	// profile
}
