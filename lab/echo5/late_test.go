// Package labecho5_test has the layers of Echo v5 around the adapter for Echo v5.
package labecho5_test

import (
	"log/slog"
	"net/http"
	"testing"
	"time"

	"github.com/labstack/echo/v5"

	repriseecho5 "github.com/reprise-go/reprise/adapters/echo5"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/lab/frameworks/stack"
	"github.com/reprise-go/reprise/lab/internal/labtest"
)

func TestMain(m *testing.M) { labtest.Main(m) }

// A handler that outlives the timeout outside is recorded, and its retry gets the
// response. Echo v5 has no timeout layer that does not wait for the handler.
func TestTimeoutOutside(t *testing.T) {
	t.Parallel()
	stack.RunLate(t, http.StatusServiceUnavailable, false, func(t *testing.T, guard *protocol.Guard, late *stack.Late) string {
		t.Helper()
		e := echo.New()
		e.Logger = slog.New(slog.DiscardHandler)
		e.POST("/", func(c *echo.Context) error {
			late.Wait()
			return c.String(http.StatusCreated, "done")
		}, func(next echo.HandlerFunc) echo.HandlerFunc {
			return func(c *echo.Context) error {
				defer late.Ended()
				return next(c)
			}
		}, repriseecho5.Middleware(guard, repriseecho5.Unscoped))
		return stack.Serve(t, http.TimeoutHandler(e, timeoutOutside, "late"))
	})
}

// timeoutOutside is how long a client waits for a handler that is late. The answers to
// its retries have to come sooner, on a busy machine too.
const timeoutOutside = time.Second
