// Package stacks_test has the layers of net/http, chi, gorilla and OpenTelemetry around
// the adapter for net/http. It is a separate module, so that lab/nethttp, whose server
// other tests of the lab run, needs none of them.
package stacks_test

import (
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-chi/chi/v5/middleware"
	"github.com/gorilla/handlers"
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"

	reprisehttp "github.com/reprise-go/reprise/adapters/nethttp"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/lab/frameworks/stack"
	"github.com/reprise-go/reprise/lab/internal/labtest"
)

func TestMain(m *testing.M) { labtest.Main(m) }

// layers are the middlewares of net/http, by name.
var layers = map[string]func(http.Handler) http.Handler{
	"chi.Compress":  middleware.Compress(5),
	"chi.Timeout":   middleware.Timeout(time.Minute),
	"chi.RealIP":    middleware.RealIP, //nolint:staticcheck // users have it, deprecated or not
	"chi.RequestID": middleware.RequestID,
	"chi.Throttle":  middleware.Throttle(100),
	"chi.NoCache":   middleware.NoCache,
	"chi.Logger":    middleware.RequestLogger(&middleware.DefaultLogFormatter{Logger: discard{}, NoColor: true}),

	"gorilla.Compress":     handlers.CompressHandler,
	"gorilla.CORS":         handlers.CORS(handlers.AllowedOrigins([]string{"https://shop.example"})),
	"gorilla.ProxyHeaders": handlers.ProxyHeaders,
	"gorilla.Logging":      func(next http.Handler) http.Handler { return handlers.CombinedLoggingHandler(io.Discard, next) },

	"http.TimeoutHandler":  func(next http.Handler) http.Handler { return http.TimeoutHandler(next, time.Minute, "late") },
	"http.MaxBytesHandler": func(next http.Handler) http.Handler { return http.MaxBytesHandler(next, 1<<20) },
	"otelhttp":             otelhttp.NewMiddleware("orders"),
	"recommended": func(next http.Handler) http.Handler {
		for _, layer := range []func(http.Handler) http.Handler{
			func(next http.Handler) http.Handler { return http.TimeoutHandler(next, time.Minute, "late") },
			middleware.Compress(5),
			handlers.CORS(handlers.AllowedOrigins([]string{"https://shop.example"})),
			middleware.RequestID,
			otelhttp.NewMiddleware("orders"),
		} {
			next = layer(next)
		}
		return next
	},
}

// discard is a silent logger of chi.
type discard struct{}

func (discard) Print(...any) {}

// kinds are the handlers.
var kinds = map[string]http.HandlerFunc{
	"json": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, `{"id":7}`)
	},
	"text": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		_, _ = io.WriteString(w, stack.Text)
	},
	"untyped": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(stack.Untyped) },
	"empty":   func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) },
	"status":  func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusAccepted) },
	"silent":  func(http.ResponseWriter, *http.Request) {},
	"redirect": func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/orders/7", http.StatusSeeOther)
	},
	"refused": func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "taken", http.StatusConflict) },
	"missing": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) },
	"failed": func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "database", http.StatusInternalServerError)
	},
	"length": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", strconv.Itoa(len(stack.Declared)))
		w.Header().Set("Content-Type", "application/octet-stream")
		_, _ = io.WriteString(w, stack.Declared)
	},
	"stream": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, part := range stack.Parts {
			_, _ = io.WriteString(w, part)
			_ = http.NewResponseController(w).Flush()
		}
	},
	"copied": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		_, _ = io.Copy(w, struct{ io.Reader }{strings.NewReader(stack.Copied)})
	},
	"file": func(w http.ResponseWriter, r *http.Request) {
		http.ServeContent(w, r, "invoice.txt", time.Unix(0, 0), strings.NewReader(stack.Text))
	},
	"compressed": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(stack.Compressed)
	},
	"large": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		for range 3 {
			_, _ = io.WriteString(w, stack.Large)
		}
	},
	"panics": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Half", "1")
		panic(stack.PanicValue)
	},
	"fields": func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["X-Many"] = []string{"1", "2"}
		w.Header().Del("Vary")
		_, _ = io.WriteString(w, "ok")
	},
}

func TestStacks(t *testing.T) {
	t.Parallel()
	names := make([]string, 0, len(layers))
	for name := range layers {
		names = append(names, name)
	}
	stack.Run(t, stack.Framework{
		Layers: names, Cut: true,
		Serve: func(t *testing.T, guard *protocol.Guard, routes []stack.Route) string {
			t.Helper()
			mux := http.NewServeMux()
			guarded := reprisehttp.Middleware(guard, reprisehttp.Unscoped)
			for _, r := range routes {
				var h http.Handler = http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
					r.Ran()
					kinds[r.Kind](w, req)
				})
				if r.Position == stack.Inside {
					h = layers[r.Layer](h)
				}
				if r.Guarded {
					h = guarded(h)
				}
				if r.Position == stack.Outside {
					h = layers[r.Layer](h)
				}
				mux.Handle("POST "+r.Path, h)
			}
			return stack.Serve(t, mux)
		},
		Differences: differences,
	})
}

var differences = []stack.Difference{
	{
		Layers: []string{"gorilla.CORS", "recommended"}, Position: stack.Inside, Answer: stack.Replay,
		Fields: []string{"Access-Control-Allow-Origin"},
		Reason: "CORS fields answer one origin and are never kept (R14): CORS belongs outside",
	},
	{
		Layers: []string{"chi.Compress", "recommended"}, Position: stack.Outside, Answer: stack.First,
		Kinds: []string{"untyped", "fields"}, Fields: []string{"Content-Encoding", "Vary"},
		Reason: "chi compresses only what has a media type, and our middleware names the type that net/http would guess later (R16)",
	},
}

// A handler that outlives the timeout outside is recorded, and its retry gets the
// response.
func TestTimeoutOutside(t *testing.T) {
	t.Parallel()
	stack.RunLate(t, http.StatusServiceUnavailable, false, func(t *testing.T, guard *protocol.Guard, late *stack.Late) string {
		t.Helper()
		guarded := reprisehttp.Middleware(guard, reprisehttp.Unscoped)(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			late.Wait()
			w.WriteHeader(http.StatusCreated)
			_, _ = io.WriteString(w, "done")
		}))
		return stack.Serve(t, http.TimeoutHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			defer late.Ended()
			guarded.ServeHTTP(w, r)
		}), timeoutOutside, "late"))
	})
}

// timeoutOutside is how long a client waits for a handler that is late. The answers to
// its retries have to come sooner, on a busy machine too.
const timeoutOutside = time.Second
