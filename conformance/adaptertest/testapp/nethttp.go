package testapp

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
	"time"

	"github.com/reprise-go/reprise/conformance/adaptertest"
	"github.com/reprise-go/reprise/core/protocol"
)

const formMemory = 1 << 20 // bytes of a form's files that are not written to disk

// NetHTTPMiddleware is an adapter for net/http.
type NetHTTPMiddleware = func(*protocol.Guard, func(*http.Request) (string, error)) func(http.Handler) http.Handler

// NetHTTP returns a function that builds a native server of net/http with an adapter.
func NetHTTP(middleware NetHTTPMiddleware) func(*App) Server {
	return func(a *App) Server { return newNetHTTP(a, middleware) }
}

func newNetHTTP(a *App, middleware NetHTTPMiddleware) Server {
	routes := http.NewServeMux()
	routes.HandleFunc("/t/", func(w http.ResponseWriter, r *http.Request) {
		c := &NetHTTPCall{W: w, R: r}
		if err := a.Run(r.Context(), c, strings.TrimPrefix(c.RawPath(), "/t/")); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	})
	inside := http.Handler(routes)
	if a.Inner != nil {
		inside = middleware(a.Inner, netHTTPTenant)(routes)
	}
	protected := NewGuarded(a, func(guard *protocol.Guard) http.Handler {
		return middleware(guard, netHTTPTenant)(inside)
	})
	protect := func(w http.ResponseWriter, r *http.Request) {
		protected.Of(r.Method, r.URL.EscapedPath()).ServeHTTP(w, r)
	}

	mux := http.NewServeMux()
	mux.HandleFunc("/t/", protect)
	mux.HandleFunc("/u/", protect)
	mux.HandleFunc("GET /executions/", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(a.Report(strings.TrimPrefix(r.URL.EscapedPath(), "/executions/"))) //nolint:gosec // JSON, never HTML
	})
	mux.HandleFunc("GET /healthz", func(http.ResponseWriter, *http.Request) {})

	handler := http.Handler(mux)
	if a.Outer {
		handler = netHTTPOuter(mux)
	}
	if a.OuterBody != "" {
		next := handler
		handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			a.ReadBody(r.Body, func() { _ = r.ParseMultipartForm(formMemory) }) //nolint:gosec // Limited bounds the body, where a case asks for it
			next.ServeHTTP(w, r)
		})
	}
	return NetHTTPServer{HTTP: &http.Server{
		Handler: a.Limited(handler), ReadHeaderTimeout: time.Minute,
		ErrorLog: slog.NewLogLogger(a.Log.Handler(), slog.LevelError),
	}}
}

// Limited wraps a handler in a layer that bounds the body, if the app asks for one.
func (a *App) Limited(next http.Handler) http.Handler {
	if a.Limit == 0 {
		return next
	}
	return http.MaxBytesHandler(next, int64(a.Limit))
}

func netHTTPTenant(r *http.Request) (string, error) {
	return TenantOf(r.Header.Values(adaptertest.TenantHeader))
}

// netHTTPOuter is a layer outside of the middleware. net/http has no status that a
// handler may leave as it is.
func netHTTPOuter(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, f := range NewOuter(r.URL.Path, r.Header.Get("Origin")).Fields {
			w.Header().Set(f[0], f[1])
		}
		next.ServeHTTP(w, r)
	})
}

// NetHTTPServer is an [http.Server] as a native [Server]. Every server of http.Handler is
// one.
type NetHTTPServer struct{ HTTP *http.Server }

// Serve implements [Server].
func (s NetHTTPServer) Serve(ln net.Listener) error {
	if err := s.HTTP.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// Shutdown implements [Server].
func (s NetHTTPServer) Shutdown(ctx context.Context) error {
	err := s.HTTP.Shutdown(ctx)
	if err != nil {
		_ = s.HTTP.Close() // best effort
	}
	return err
}

// NetHTTPCall is a [Call] in net/http, and its own stream.
type NetHTTPCall struct {
	W http.ResponseWriter
	R *http.Request
}

// Method implements [Call].
func (c *NetHTTPCall) Method() string { return c.R.Method }

// RawPath implements [Call].
func (c *NetHTTPCall) RawPath() string { return c.R.URL.EscapedPath() }

// RawQuery implements [Call].
func (c *NetHTTPCall) RawQuery() string { return c.R.URL.RawQuery }

// Program implements [Call].
func (c *NetHTTPCall) Program() string { return c.R.Header.Get(adaptertest.ProgramHeader) }

// Body implements [Call].
func (c *NetHTTPCall) Body() ([]byte, error) { return io.ReadAll(c.R.Body) }

// AddHeader implements [Output].
func (c *NetHTTPCall) AddHeader(name, value string) { c.W.Header().Add(name, value) }

// RemoveHeader implements [Call].
func (c *NetHTTPCall) RemoveHeader(name string) { c.W.Header().Del(name) }

// SetStatus implements [Call].
func (c *NetHTTPCall) SetStatus(status int) { c.W.WriteHeader(status) }

// SetStatusOnly equals SetStatus in net/http.
func (c *NetHTTPCall) SetStatusOnly(status int) error {
	c.W.WriteHeader(status)
	return nil
}

// Report adds the error to the writer's list of errors, if it has one; net/http's has
// none.
func (c *NetHTTPCall) Report(err error) {
	if w, ok := c.W.(interface{ Report(err error) }); ok {
		w.Report(err)
	}
}

// Inform removes the fields again after it sent them, because net/http would keep them
// for the final response.
func (c *NetHTTPCall) Inform(status int, fields []adaptertest.Pair) {
	before := c.W.Header().Clone()
	AddHeaders(c, fields)
	c.W.WriteHeader(status)
	clear(c.W.Header())
	maps.Copy(c.W.Header(), before)
}

// Write implements [Output].
func (c *NetHTTPCall) Write(p []byte, how adaptertest.WriteMode) {
	switch how {
	case adaptertest.WriteString:
		_, _ = io.WriteString(c.W, string(p)) //nolint:staticcheck // a handler that writes strings is the point
	case adaptertest.WriteCopy:
		_, _ = io.Copy(c.W, struct{ io.Reader }{bytes.NewReader(p)})
	default:
		_, _ = c.W.Write(p)
	}
}

// Flush implements [Output].
func (c *NetHTTPCall) Flush() { _ = http.NewResponseController(c.W).Flush() }

// Announce implements [Call]: net/http wants trailers named before the status.
func (c *NetHTTPCall) Announce(trailers []string) {
	for _, name := range trailers {
		c.W.Header().Add("Trailer", name)
	}
}

// SetTrailer implements [Output]. A trailer that was announced is set like a field.
func (c *NetHTTPCall) SetTrailer(name, value string) { c.W.Header().Add(name, value) }

// Stream implements [Call]. A handler of net/http streams directly, so produce runs at
// once.
func (c *NetHTTPCall) Stream(produce func(Output) adaptertest.Behaviour) {
	switch produce(c) {
	case adaptertest.Panics:
		panic(PanicValue)
	case adaptertest.Aborts:
		c.Abort()
	default:
	}
}

// Fail answers as handlers of net/http do, which return no error.
func (c *NetHTTPCall) Fail(status int) error {
	http.Error(c.W, http.StatusText(status), status)
	return nil
}

// Abort implements [Call].
func (c *NetHTTPCall) Abort() { panic(http.ErrAbortHandler) }

// Hijack implements [Call].
func (c *NetHTTPCall) Hijack(answer []byte) error {
	conn, rw, err := http.NewResponseController(c.W).Hijack()
	if err != nil {
		return err
	}
	defer conn.Close()
	_, _ = rw.Write(answer)
	_ = rw.Flush()
	return nil
}
