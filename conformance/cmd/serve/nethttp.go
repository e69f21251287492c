package serve

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	reprisehttp "github.com/reprise-go/reprise/adapters/nethttp"
	"github.com/reprise-go/reprise/conformance"
	"github.com/reprise-go/reprise/core/protocol"
)

// NetHTTP returns what serves a middleware of net/http that is not in the table, such as one that is broken on purpose, the
// way that [Adapter] serves reprisehttp.
func NetHTTP(middleware netHTTPMiddleware) func(testing.TB, conformance.AdapterOptions) (addr string) {
	return inTest(func(a *app) native { return serveNetHTTP(a, middleware) })
}

// netHTTPMiddleware is an adapter for net/http.
type netHTTPMiddleware = func(*protocol.Guard, func(*http.Request) (string, error)) func(http.Handler) http.Handler

// newNetHTTP makes the server of the adapter for net/http.
func newNetHTTP(a *app) native {
	return serveNetHTTP(a, func(guard *protocol.Guard, scope func(*http.Request) (string, error)) func(http.Handler) http.Handler {
		return reprisehttp.Middleware(guard, scope)
	})
}

func serveNetHTTP(a *app, middleware netHTTPMiddleware) native {
	routes := http.NewServeMux()
	routes.HandleFunc("/t/", func(w http.ResponseWriter, r *http.Request) {
		c := &netHTTPCall{w: w, r: r}
		if err := a.run(r.Context(), c, strings.TrimPrefix(c.rawPath(), "/t/")); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	})
	protected := newGuarded(a, func(guard *protocol.Guard) http.Handler {
		return middleware(guard, netHTTPTenant)(routes)
	})
	protect := func(w http.ResponseWriter, r *http.Request) {
		protected.of(r.Method, r.URL.EscapedPath()).ServeHTTP(w, r)
	}

	mux := http.NewServeMux()
	mux.HandleFunc("/t/", protect)
	mux.HandleFunc("/u/", protect)
	mux.HandleFunc("GET /executions/", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(a.runs.report(strings.TrimPrefix(r.URL.EscapedPath(), "/executions/")))
	})
	mux.HandleFunc("GET /healthz", func(http.ResponseWriter, *http.Request) {})

	handler := http.Handler(mux)
	if a.outer {
		handler = netHTTPOuter(mux)
	}
	return netHTTPServer{&http.Server{
		Handler: handler, ReadHeaderTimeout: time.Minute,
		ErrorLog: slog.NewLogLogger(a.log.Handler(), slog.LevelError),
	}}
}

func netHTTPTenant(r *http.Request) (string, error) {
	return tenantOf(r.Header.Values(conformance.TenantHeader))
}

// netHTTPOuter is a layer outside of the middleware. net/http has no status that a handler may leave as it is.
func netHTTPOuter(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, f := range newOuter(r.URL.Path, r.Header.Get("Origin")).fields {
			w.Header().Set(f[0], f[1])
		}
		next.ServeHTTP(w, r)
	})
}

// netHTTPServer is an [http.Server] as a native server. Every server of http.Handler is one.
type netHTTPServer struct{ *http.Server }

func (s netHTTPServer) serve(ln net.Listener) error {
	if err := s.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func (s netHTTPServer) shutdown(ctx context.Context) error {
	err := s.Shutdown(ctx)
	if err != nil {
		_ = s.Close() // closes what it can
	}
	return err
}

// netHTTPCall is a [call] in net/http, and its own stream.
type netHTTPCall struct {
	w http.ResponseWriter
	r *http.Request
}

func (c *netHTTPCall) method() string        { return c.r.Method }
func (c *netHTTPCall) rawPath() string       { return c.r.URL.EscapedPath() }
func (c *netHTTPCall) rawQuery() string      { return c.r.URL.RawQuery }
func (c *netHTTPCall) program() string       { return c.r.Header.Get(conformance.ProgramHeader) }
func (c *netHTTPCall) body() ([]byte, error) { return io.ReadAll(c.r.Body) }

func (c *netHTTPCall) addHeader(name, value string) { c.w.Header().Add(name, value) }
func (c *netHTTPCall) setStatus(status int)         { c.w.WriteHeader(status) }

// inform sends the fields with the response and takes them back, because what is in the header stays for the final one.
func (c *netHTTPCall) inform(status int, fields []conformance.Pair) {
	before := c.w.Header().Clone()
	addHeaders(c, fields)
	c.w.WriteHeader(status)
	clear(c.w.Header())
	maps.Copy(c.w.Header(), before)
}

func (c *netHTTPCall) write(p []byte, how conformance.WriteMode) {
	switch how {
	case conformance.WriteString:
		_, _ = io.WriteString(c.w, string(p)) //nolint:staticcheck // a handler that writes strings is the point
	case conformance.WriteCopy:
		_, _ = io.Copy(c.w, struct{ io.Reader }{bytes.NewReader(p)})
	default:
		_, _ = c.w.Write(p)
	}
}

func (c *netHTTPCall) flush() { _ = http.NewResponseController(c.w).Flush() }

func (c *netHTTPCall) announce(trailers []string) {
	for _, name := range trailers {
		c.w.Header().Add("Trailer", name)
	}
}

func (c *netHTTPCall) setTrailer(name, value string) { c.w.Header().Add(name, value) }

func (c *netHTTPCall) stream(produce func(output) conformance.Behaviour) {
	switch produce(c) {
	case conformance.Panics:
		panic(panicValue)
	case conformance.Aborts:
		c.abort()
	default:
	}
}

// fail answers as handlers of net/http do, which return no error.
func (c *netHTTPCall) fail(status int) error {
	http.Error(c.w, http.StatusText(status), status)
	return nil
}

func (c *netHTTPCall) abort() { panic(http.ErrAbortHandler) }

func (c *netHTTPCall) hijack(answer []byte) error {
	conn, rw, err := http.NewResponseController(c.w).Hijack()
	if err != nil {
		return err
	}
	defer conn.Close()
	_, _ = rw.Write(answer)
	_ = rw.Flush()
	return nil
}
