// Package labecho_test has the layers of Echo and OpenTelemetry around the adapter for
// Echo.
package labecho_test

import (
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"

	repriseecho "github.com/reprise-go/reprise/adapters/echo"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/lab/frameworks/stack"
	"github.com/reprise-go/reprise/lab/internal/labtest"
)

func TestMain(m *testing.M) { labtest.Main(m) }

// A handler that outlives the timeout outside is recorded, and its retry gets the
// response: with http.TimeoutHandler always, with Echo's own layer as long as no other
// request got its context.
func TestTimeoutOutside(t *testing.T) {
	t.Parallel()
	serve := func(t *testing.T, guard *protocol.Guard, late *stack.Late, layers ...echo.MiddlewareFunc) http.Handler {
		t.Helper()
		e := echo.New()
		e.Logger.SetOutput(io.Discard)
		e.POST("/", func(c echo.Context) error {
			late.Wait()
			return c.String(http.StatusCreated, "done")
		}, append(layers, func(next echo.HandlerFunc) echo.HandlerFunc {
			return func(c echo.Context) error {
				defer late.Ended()
				return next(c)
			}
		}, repriseecho.Middleware(guard, repriseecho.Unscoped))...)
		return e
	}
	t.Run("http.TimeoutHandler", func(t *testing.T) {
		t.Parallel()
		stack.RunLate(t, http.StatusServiceUnavailable, false, func(t *testing.T, guard *protocol.Guard, late *stack.Late) string {
			t.Helper()
			return stack.Serve(t, http.TimeoutHandler(serve(t, guard, late), timeoutOutside, "late"))
		})
	})
	t.Run("middleware.Timeout", func(t *testing.T) {
		t.Parallel()
		stack.RunLate(t, http.StatusServiceUnavailable, true, func(t *testing.T, guard *protocol.Guard, late *stack.Late) string {
			t.Helper()
			layer := middleware.TimeoutWithConfig(middleware.TimeoutConfig{Timeout: timeoutOutside})
			return stack.Serve(t, serve(t, guard, late, layer))
		})
	})
}

// timeoutOutside is how long a client waits for a handler that is late. The answers to
// its retries have to come sooner, on a busy machine too.
const timeoutOutside = time.Second
