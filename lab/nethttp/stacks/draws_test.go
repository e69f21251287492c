package stacks_test

import (
	"crypto/rand"
	"io"
	"maps"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"
	"github.com/gorilla/handlers"
	"github.com/gorilla/mux"
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"

	reprisehttp "github.com/reprise-go/reprise/adapters/nethttp"
	"github.com/reprise-go/reprise/lab/draws"
	"github.com/reprise-go/reprise/lab/internal/labtest"
)

// discard is a silent logger of chi.
type discard struct{}

func (discard) Print(...any) {}

// drawn are the layers of draws, by name.
var drawn = func() map[string]func(http.Handler) http.Handler {
	all := maps.Clone(draws.Wrappers)
	maps.Copy(all, map[string]func(http.Handler) http.Handler{
		"chi.Compress":     middleware.Compress(5),
		"chi.Timeout":      middleware.Timeout(time.Minute),
		"chi.NoCache":      middleware.NoCache,
		"chi.RealIP":       middleware.RealIP, //nolint:staticcheck // users have it, deprecated or not
		"chi.RequestID":    middleware.RequestID,
		"chi.Throttle":     middleware.Throttle(100),
		"chi.Logger":       middleware.RequestLogger(&middleware.DefaultLogFormatter{Logger: discard{}, NoColor: true}),
		"gorilla.Compress": handlers.CompressHandler,
		"gorilla.CORS":     handlers.CORS(handlers.AllowedOrigins([]string{"https://shop.example"})),
		"gorilla.Proxy":    handlers.ProxyHeaders,
		"gorilla.Logging":  func(next http.Handler) http.Handler { return handlers.CombinedLoggingHandler(io.Discard, next) },
		"otelhttp":         otelhttp.NewMiddleware("orders"),
		"MaxBytes":         func(next http.Handler) http.Handler { return http.MaxBytesHandler(next, 1<<20) },
	})
	return all
}()

func TestDraws(t *testing.T) {
	t.Parallel()
	draws.Run(t, labtest.RaceEnabled, framework(func(h http.Handler) http.Handler { return h }))
}

// An adapter that does one thing wrong is found.
func TestDrawsFindMistakes(t *testing.T) {
	t.Parallel()
	for name, mistake := range map[string]func(http.ResponseWriter, *http.Request, http.Handler){
		"a replay without a field": func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			next.ServeHTTP(&mistaken{w, func(h http.Header, status int) int {
				if h.Get("Idempotent-Replayed") != "" {
					h.Del("X-A")
				}
				return status
			}}, r)
		},
		"a replay with another status": func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			next.ServeHTTP(&mistaken{w, func(h http.Header, status int) int {
				if h.Get("Idempotent-Replayed") != "" && status == http.StatusCreated {
					return http.StatusOK
				}
				return status
			}}, r)
		},
		"a retry that runs again": func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			r.Header.Set("Idempotency-Key", rand.Text())
			next.ServeHTTP(w, r)
		},
		"a first response with a field too many": func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			w.Header().Add("Vary", "Idempotency-Key")
			next.ServeHTTP(w, r)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if !draws.Finds(t, framework(func(h http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { mistake(w, r, h) })
			})) {
				t.Error("the draws found nothing")
			}
		})
	}
}

// mistaken is a writer that changes the header before it is written.
type mistaken struct {
	http.ResponseWriter

	change func(h http.Header, status int) int
}

func (w *mistaken) WriteHeader(status int) {
	w.ResponseWriter.WriteHeader(w.change(w.Header(), status))
}

func (w *mistaken) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// framework serves net/http with the adapter in a layer.
func framework(around func(adapter http.Handler) http.Handler) func(*testing.T, *draws.Cases) *draws.Framework {
	return func(t *testing.T, cases *draws.Cases) *draws.Framework {
		t.Helper()
		caseOf := func(r *http.Request) *draws.Case { return cases.Find(r.Header.Get(draws.CaseField)) }
		guarded := func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { stackOf(caseOf(r), around, next).ServeHTTP(w, r) })
		}
		program := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { programOf(caseOf(r)).ServeHTTP(w, r) })
		f := layersOfHTTP()
		f.Name, f.Hosts = "net/http", []draws.Host{
			draws.Serve(t, "http.Server", guarded(program)),
			draws.Serve(t, "http.TimeoutHandler", http.TimeoutHandler(guarded(program), time.Minute, "late")),
		}
		for _, name := range slices.Sorted(maps.Keys(routers)) {
			f.Hosts = append(f.Hosts, draws.Serve(t, name, routers[name](guarded, func(param func(*http.Request) string) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if got := param(r); got != "draw" {
						t.Errorf("%s: the parameter of the route is %q", name, got)
					}
					program(w, r)
				})
			})))
		}
		return f
	}
}

// routers are the ones that the net/http adapter also serves. Each has the middleware on
// a group, and one route below it, with a parameter.
var routers = map[string]func(guarded func(http.Handler) http.Handler, handler func(param func(*http.Request) string) http.Handler) http.Handler{
	"http.ServeMux": func(guarded func(http.Handler) http.Handler, handler func(func(*http.Request) string) http.Handler) http.Handler {
		below, m := http.NewServeMux(), http.NewServeMux()
		below.Handle("POST /{id}", handler(func(r *http.Request) string { return r.PathValue("id") }))
		m.Handle("/", guarded(below))
		return m
	},
	"chi": func(guarded func(http.Handler) http.Handler, handler func(func(*http.Request) string) http.Handler) http.Handler {
		m := chi.NewRouter()
		m.Route("/", func(r chi.Router) {
			r.Use(guarded)
			r.Method(http.MethodPost, "/{id}", handler(func(r *http.Request) string { return chi.URLParam(r, "id") }))
		})
		return m
	},
	"gorilla": func(guarded func(http.Handler) http.Handler, handler func(func(*http.Request) string) http.Handler) http.Handler {
		m := mux.NewRouter()
		group := m.PathPrefix("/").Subrouter()
		group.Use(guarded)
		group.Handle("/{id}", handler(func(r *http.Request) string { return mux.Vars(r)["id"] })).Methods(http.MethodPost)
		return m
	},
}

// layersOfHTTP returns a framework with the layers and steps of net/http.
func layersOfHTTP() *draws.Framework {
	return &draws.Framework{
		Layers: slices.Sorted(maps.Keys(drawn)), Ops: draws.HTTPOps,
		Coders: []string{"chi.Compress", "gorilla.Compress"}, Lazy: []string{"timeout", "buffering", "http.TimeoutHandler"},
		Blind: []string{"timeout", "http.TimeoutHandler", "chi.Compress", "chi.Logger", "gorilla.Logging"},
		Documented: []draws.Difference{{
			Rule: "net/http writes the header for a copy of nothing, also below chi.Logger; the adapter does not", Ends: true,
			Applies: func(d *draws.Draw, _ *draws.Seen) bool {
				return slices.ContainsFunc(d.Steps, func(s draws.Step) bool { return s.Op == "copy" && s.N == 0 })
			},
		}, {
			Rule: "a response that was begun is sent before its connection is taken, and a layer outside that compresses holds it back", Ends: true,
			Applies: func(d *draws.Draw, s *draws.Seen) bool { return s.Outer && d.Does("hijack") },
		}, {
			Rule: "the adapter's writer has Flush and Hijack, also where the layers outside have none, and layers inside that look for them by type find them", Ends: true,
			Applies: func(d *draws.Draw, s *draws.Seen) bool {
				return d.Has(d.Inside, "otelhttp", "chi.Compress", "chi.Logger", "gorilla.Compress", "gorilla.Logging") && (s.Lazy || d.Has(d.Outside, "hiding", "embedding")) && d.Does("flush", "stream", "hijack")
			},
		}, {
			Rule:   "the adapter's writer has ReadFrom, also where the layers outside have none, and gorilla.Compress inside then writes in another way",
			Fields: []string{"Content-Type", "Content-Length", "framing"},
			Applies: func(d *draws.Draw, s *draws.Seen) bool {
				return d.Has(d.Inside, "gorilla.Compress") && (s.Lazy || d.Proto == "2" || d.Has(d.Outside, "hiding", "embedding"))
			},
		}},
		Fresh: map[string][]string{"gorilla.CORS": {"Access-Control-Allow-Origin"}},
	}
}

// stackOf puts the layers of a case around a handler.
func stackOf(c *draws.Case, around func(http.Handler) http.Handler, h http.Handler) http.Handler {
	h = layered(c.Inside, h)
	if c.Guard != nil {
		h = around(reprisehttp.Middleware(c.Guard, reprisehttp.Unscoped)(h))
	}
	return layered(c.Outside, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer c.Watch()
		h.ServeHTTP(w, r)
	}))
}

// programOf makes the handler of a case.
func programOf(c *draws.Case) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.Ran()
		for _, s := range c.Steps {
			if !(draws.HTTP{W: w, R: r}).Do(c, s) {
				return
			}
		}
	})
}

// layered puts layers around a handler, the first one outermost.
func layered(names []string, h http.Handler) http.Handler {
	for _, name := range slices.Backward(names) {
		h = drawn[name](h)
	}
	return h
}
