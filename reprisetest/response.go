package reprisetest

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/reprise-go/reprise/core/protocol"
)

// Response is a response, with its whole body.
type Response struct {
	Status int
	Header http.Header
	Body   []byte
	Panic  any // the panic value of the handler; a server would have cut the connection
}

// Replayed reports whether the response is a replay.
func (a *Response) Replayed() bool { return a.Header.Get(protocol.FieldReplayed) == "true" }

// String returns the status, the header and up to 1,000 bytes of the body, for people.
func (a *Response) String() string {
	if a.Panic != nil {
		return fmt.Sprintf("a panic: %v", a.Panic)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d %s", a.Status, http.StatusText(a.Status))
	for _, name := range slices.Sorted(maps.Keys(a.Header)) {
		for _, value := range a.Header[name] {
			fmt.Fprintf(&b, "\n\t%s: %s", name, value)
		}
	}
	if len(a.Body) > 0 {
		fmt.Fprintf(&b, "\n\t\n\t%s", bytes.ReplaceAll(a.Body[:min(len(a.Body), 1000)], []byte("\n"), []byte("\n\t")))
	}
	return b.String()
}

// Func makes a handler of a function that serves requests, such as the Test method of a
// Fiber app. An error of the function becomes a panic.
//
//	reprisetest.Func(func(r *http.Request) (*http.Response, error) { return app.Test(r, -1) })
func Func(do func(*http.Request) (*http.Response, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		response, err := do(r)
		if err != nil {
			panic(err)
		}
		defer response.Body.Close()
		for name, values := range response.Header {
			w.Header()[name] = append(w.Header()[name], values...)
		}
		w.WriteHeader(response.StatusCode)
		if _, err := io.Copy(w, response.Body); err != nil {
			panic(err)
		}
	})
}

var keys atomic.Uint64

// Post returns a POST request with a JSON body and a key that no other request of the
// process has. Set other fields that the handler needs, such as Authorization.
func Post(target, body string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, target, strings.NewReader(body)) //nolint:noctx // the caller gives it its own
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Idempotency-Key", fmt.Sprintf("reprisetest-%d", keys.Add(1)))
	return r
}

// message is a request that can be sent many times.
type message struct {
	r    *http.Request
	body []byte
}

// read returns the message of r, whose body it reads and puts back.
func read(tb testing.TB, r *http.Request) message {
	tb.Helper()
	m := message{r: r}
	if r.Body != nil {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			tb.Fatalf("reprisetest: the body of the request cannot be read: %v", err)
		}
		m.body = body
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	return m
}

// send serves a copy of the request once.
func (m message) send(tb testing.TB, h http.Handler) (a *Response) {
	tb.Helper()
	r := m.r.Clone(m.r.Context())
	r.Body = io.NopCloser(bytes.NewReader(m.body))
	r.ContentLength = int64(len(m.body))
	if r.RequestURI == "" {
		r.RequestURI = r.URL.RequestURI() // as a server has it; that of a client's request is empty
	}
	w := httptest.NewRecorder()
	defer func() {
		if p := recover(); p != nil {
			a = &Response{Header: http.Header{}, Panic: p}
		}
	}()
	h.ServeHTTP(w, r)
	result := w.Result()
	defer result.Body.Close()
	return &Response{Status: result.StatusCode, Header: result.Header, Body: w.Body.Bytes()}
}
