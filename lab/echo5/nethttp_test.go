package labecho5_test

import (
	"log/slog"
	"net/http"
	"testing"

	"github.com/labstack/echo/v5"

	repriseecho5 "github.com/reprise-go/reprise/adapters/echo5"
	reprisehttp "github.com/reprise-go/reprise/adapters/nethttp"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/lab/frameworks/stack"
)

// A layer of net/http does not see the error that a handler of Echo returns, and Echo
// answers it after the layer returned: to the adapter it is an empty 200, and would be
// replayed as one.
func TestR32NetHTTPAdapterInWrapMiddleware(t *testing.T) {
	t.Parallel()
	for position, add := range map[string]func(*echo.Echo, echo.MiddlewareFunc){
		"Use": func(e *echo.Echo, m echo.MiddlewareFunc) { e.Use(m) },
		"Pre": func(e *echo.Echo, m echo.MiddlewareFunc) { e.Pre(m) },
	} {
		t.Run(position, func(t *testing.T) {
			t.Parallel()
			stack.RunMisuseBeside(t, "repriseecho5", func(layer func(http.Handler) http.Handler) http.Handler {
				e := quiet()
				add(e, echo.WrapMiddleware(layer))
				e.POST("/", func(*echo.Context) error { return echo.NewHTTPError(http.StatusConflict, "taken") })
				return e
			})
		})
	}
}

// An http.Handler may be protected as such, below Echo and around it.
func TestNetHTTPAdapterBelowAndAroundEcho(t *testing.T) {
	t.Parallel()
	for status, handler := range stack.Plain {
		t.Run("WrapHandler/"+http.StatusText(status), func(t *testing.T) {
			t.Parallel()
			stack.RunUse(t, status, func(guard *protocol.Guard) http.Handler {
				e := quiet()
				e.Use(echo.WrapMiddleware(func(next http.Handler) http.Handler { return next }))
				e.POST("/", echo.WrapHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { // which is built anew for each request
					reprisehttp.Middleware(guard, reprisehttp.Unscoped)(handler).ServeHTTP(w, r)
				})))
				return e
			})
		})
		t.Run("below another layer/"+http.StatusText(status), func(t *testing.T) {
			t.Parallel()
			stack.RunUse(t, status, func(guard *protocol.Guard) http.Handler {
				e := quiet()
				e.Use(echo.WrapMiddleware(func(next http.Handler) http.Handler {
					return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { next.ServeHTTP(w, r) })
				}))
				e.POST("/", func(c *echo.Context) error {
					reprisehttp.Middleware(guard, reprisehttp.Unscoped)(handler).ServeHTTP(c.Response(), c.Request())
					return nil
				})
				return e
			})
		})
	}
	for status, handler := range map[int]echo.HandlerFunc{
		http.StatusOK:       func(*echo.Context) error { return nil },
		http.StatusConflict: func(*echo.Context) error { return echo.NewHTTPError(http.StatusConflict, "taken") },
	} {
		t.Run("around/"+http.StatusText(status), func(t *testing.T) {
			t.Parallel()
			stack.RunUse(t, status, func(guard *protocol.Guard) http.Handler {
				e := quiet()
				e.POST("/", handler)
				return reprisehttp.Middleware(guard, reprisehttp.Unscoped)(e)
			})
		})
	}
}

// Echo makes the layers of WrapMiddleware anew for each request. A layer may have another
// handler, protected once; and one that calls Echo's handler as a function may stand
// outside of a handler that is protected for each request.
func TestNetHTTPAdapterBesideAndBelowALayer(t *testing.T) {
	t.Parallel()
	for status, handler := range stack.Plain {
		for name, build := range map[string]func(*echo.Echo, func(http.Handler) http.Handler){
			"beside": func(e *echo.Echo, protect func(http.Handler) http.Handler) {
				own := protect(handler)
				e.Use(echo.WrapMiddleware(func(next http.Handler) http.Handler {
					mux := http.NewServeMux()
					mux.Handle("POST /", own)
					mux.Handle("/", next)
					return mux
				}))
			},
			"below": func(e *echo.Echo, protect func(http.Handler) http.Handler) {
				e.Use(echo.WrapMiddleware(func(next http.Handler) http.Handler {
					call := next.(http.HandlerFunc)
					return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { call(w, r) })
				}))
				e.POST("/", func(c *echo.Context) error {
					protect(handler).ServeHTTP(c.Response(), c.Request())
					return nil
				})
			},
		} {
			t.Run(name+"/"+http.StatusText(status), func(t *testing.T) {
				t.Parallel()
				stack.RunUse(t, status, func(guard *protocol.Guard) http.Handler {
					e := quiet()
					build(e, reprisehttp.Middleware(guard, reprisehttp.Unscoped))
					return e
				})
			})
		}
	}
}

func quiet() *echo.Echo {
	e := echo.New()
	e.Logger = slog.New(slog.DiscardHandler)
	return e
}

func TestReverseProxyInside(t *testing.T) {
	t.Parallel()
	stack.RunProxy(t, func(guard *protocol.Guard, proxy http.Handler) http.Handler {
		e := quiet()
		e.POST("/", echo.WrapHandler(proxy), repriseecho5.Middleware(guard, repriseecho5.Unscoped))
		return e
	})
}
