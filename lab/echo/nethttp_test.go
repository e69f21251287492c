package labecho_test

import (
	"io"
	"net/http"
	"testing"

	"github.com/labstack/echo/v4"

	repriseecho "github.com/reprise-go/reprise/adapters/echo"
	reprisehttp "github.com/reprise-go/reprise/adapters/nethttp"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/lab/frameworks/stack"
)

// An http.Handler may be protected as such, below Echo and around it.
func TestNetHTTPAdapterBelowAndAroundEcho(t *testing.T) {
	t.Parallel()
	for status, handler := range stack.Plain {
		t.Run("WrapHandler/"+http.StatusText(status), func(t *testing.T) {
			t.Parallel()
			stack.RunUse(t, status, func(guard *protocol.Guard) http.Handler {
				e := quiet()
				e.POST("/", echo.WrapHandler(reprisehttp.Middleware(guard, reprisehttp.Unscoped)(handler)))
				return e
			})
		})
	}
	for status, handler := range map[int]echo.HandlerFunc{
		http.StatusOK:       func(echo.Context) error { return nil },
		http.StatusConflict: func(echo.Context) error { return echo.NewHTTPError(http.StatusConflict, "taken") },
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

func quiet() *echo.Echo {
	e := echo.New()
	e.Logger.SetOutput(io.Discard)
	return e
}

func TestReverseProxyInside(t *testing.T) {
	t.Parallel()
	stack.RunProxy(t, func(guard *protocol.Guard, proxy http.Handler) http.Handler {
		e := quiet()
		e.POST("/", echo.WrapHandler(proxy), repriseecho.Middleware(guard, repriseecho.Unscoped))
		return e
	})
}
