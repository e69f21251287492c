// Package labgin_test has the layers of Gin, gin-contrib and OpenTelemetry around the
// adapter for Gin.
package labgin_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/gin-contrib/timeout"
	"github.com/gin-gonic/gin"

	reprisegin "github.com/reprise-go/reprise/adapters/gin"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/lab/frameworks/stack"
	"github.com/reprise-go/reprise/lab/internal/labtest"
)

func TestMain(m *testing.M) {
	gin.SetMode(gin.ReleaseMode)
	labtest.Main(m)
}

// The timeouts of gin-contrib are made before a test runs: timeout.New of its first
// releases writes a variable that each of its middlewares reads.
var (
	timeoutMinute = timeout.New(timeout.WithTimeout(time.Minute))
	timeoutShort  = timeout.New(timeout.WithTimeout(timeoutOutside), timeout.WithResponse(func(c *gin.Context) {
		c.Header("Content-Length", "4") // where the layer waits for the handler, the client does not
		c.Header("Connection", "close") // and its next request needs another connection
		c.String(http.StatusRequestTimeout, "late")
		c.Writer.Flush()
	}))
)

// A handler that outlives the timeout outside is recorded, and its retry gets the
// response.
func TestTimeoutOutside(t *testing.T) {
	t.Parallel()
	serve := func(t *testing.T, guard *protocol.Guard, late *stack.Late, layers ...gin.HandlerFunc) http.Handler {
		t.Helper()
		engine := gin.New()
		engine.POST("/", append(layers, func(c *gin.Context) {
			defer late.Ended()
			c.Next()
		}, reprisegin.Middleware(guard, reprisegin.Unscoped), func(c *gin.Context) {
			late.Wait()
			c.String(http.StatusCreated, "done")
		})...)
		return engine.Handler()
	}
	t.Run("http.TimeoutHandler", func(t *testing.T) {
		t.Parallel()
		stack.RunLate(t, http.StatusServiceUnavailable, false, func(t *testing.T, guard *protocol.Guard, late *stack.Late) string {
			t.Helper()
			return stack.Serve(t, http.TimeoutHandler(serve(t, guard, late), timeoutOutside, "late"))
		})
	})
	t.Run("gin-contrib", func(t *testing.T) {
		t.Parallel()
		waits := timeoutWaits(t)
		if labtest.RaceEnabled && !waits {
			t.Skip("this release uses gin.Context in two goroutines at once, with and without our middleware")
		}
		stack.RunLate(t, http.StatusRequestTimeout, !waits, func(t *testing.T, guard *protocol.Guard, late *stack.Late) string {
			t.Helper()
			return stack.Serve(t, serve(t, guard, late, timeoutShort))
		})
	})
}

// timeoutWaits reports whether the timeout of gin-contrib waits for its handler, as it
// does from 1.2.1 on, which is also the first release that sets a deadline. Earlier ones
// leave gin.Context to the handler and to another request at once.
func timeoutWaits(t *testing.T) (waits bool) {
	t.Helper()
	engine := gin.New()
	engine.POST("/", timeoutMinute, func(c *gin.Context) { _, waits = c.Request.Context().Deadline() })
	engine.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", http.NoBody))
	return waits
}

// timeoutOutside is how long a client waits for a handler that is late. The answers to
// its retries have to come sooner, on a busy machine too.
const timeoutOutside = time.Second
