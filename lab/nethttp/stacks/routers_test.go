package stacks_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/gorilla/mux"

	"github.com/reprise-go/reprise/lab/frameworks/cost"
	"github.com/reprise-go/reprise/lab/internal/labtest"
)

// routers are the ones that the net/http adapter also serves. Each has the middleware on
// a group, and one route below it, with a parameter.
var routers = map[string]func(guarded func(http.Handler) http.Handler, handler func(param func(*http.Request) string) http.Handler) http.Handler{
	"ServeMux": func(guarded func(http.Handler) http.Handler, handler func(func(*http.Request) string) http.Handler) http.Handler {
		below, m := http.NewServeMux(), http.NewServeMux()
		below.Handle("POST /api/orders/{id}", handler(func(r *http.Request) string { return r.PathValue("id") }))
		m.Handle("/api/", guarded(below))
		return m
	},
	"chi": func(guarded func(http.Handler) http.Handler, handler func(func(*http.Request) string) http.Handler) http.Handler {
		m := chi.NewRouter()
		m.Route("/api", func(r chi.Router) {
			r.Use(guarded)
			r.Method(http.MethodPost, "/orders/{id}", handler(func(r *http.Request) string { return chi.URLParam(r, "id") }))
		})
		return m
	},
	"gorilla": func(guarded func(http.Handler) http.Handler, handler func(func(*http.Request) string) http.Handler) http.Handler {
		m := mux.NewRouter()
		api := m.PathPrefix("/api").Subrouter()
		api.Use(guarded)
		api.Handle("/orders/{id}", handler(func(r *http.Request) string { return mux.Vars(r)["id"] })).Methods(http.MethodPost)
		return m
	},
}

func TestNetHTTPServesRouters(t *testing.T) {
	t.Parallel()
	for name, router := range routers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			runs := 0
			server := httptest.NewServer(router(cost.Middleware(t), func(param func(*http.Request) string) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					runs++
					body, _ := io.ReadAll(r.Body)
					w.WriteHeader(http.StatusCreated)
					fmt.Fprintf(w, "run %d of order %s: %s", runs, param(r), body)
				})
			}))
			t.Cleanup(server.Close)
			for i, replayed := range []string{"", "true"} {
				status, body, header := routerPost(t, server.URL+"/api/orders/7", "key")
				if status != http.StatusCreated || body != "run 1 of order 7: book" || header.Get("Idempotent-Replayed") != replayed {
					t.Errorf("request %d: %d %q, replayed %q", i+1, status, body, header.Get("Idempotent-Replayed"))
				}
			}
			if status, body, _ := routerPost(t, server.URL+"/api/orders/8", "key"); status != http.StatusUnprocessableEntity {
				t.Errorf("the key for another order: %d %q, want 422", status, body)
			}
			for range 2 {
				if status, _, _ := routerPost(t, server.URL+"/api/nothing", "lost"); status != http.StatusNotFound {
					t.Errorf("no route: %d, want 404", status)
				}
			}
		})
	}
}

func routerPost(t *testing.T, url, key string) (status int, body string, header http.Header) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader("book"))
	labtest.Must(t, err)
	r.Header.Set("Idempotency-Key", key)
	res, err := new(http.Client).Do(r)
	labtest.Must(t, err)
	data, err := io.ReadAll(res.Body)
	labtest.Must(t, err)
	_ = res.Body.Close()
	return res.StatusCode, string(data), res.Header
}
