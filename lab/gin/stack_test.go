// Package labgin_test has the layers of Gin, gin-contrib and OpenTelemetry around the
// adapter for Gin.
package labgin_test

import (
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gin-contrib/cors"
	"github.com/gin-contrib/gzip"
	"github.com/gin-contrib/requestid"
	"github.com/gin-contrib/timeout"
	"github.com/gin-gonic/gin"
	"go.opentelemetry.io/contrib/instrumentation/github.com/gin-gonic/gin/otelgin"

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

// layers are the middlewares of Gin, by name.
var layers = map[string][]gin.HandlerFunc{
	"gzip":      {gzip.Gzip(gzip.DefaultCompression)},
	"cors":      {allowed()},
	"requestid": {requestid.New()},
	"timeout":   {timeoutMinute},
	"errors":    {gin.ErrorLogger()},
	"logger":    {gin.LoggerWithWriter(io.Discard)},
	"recovery":  {gin.CustomRecoveryWithWriter(io.Discard, func(c *gin.Context, _ any) { c.AbortWithStatus(http.StatusInternalServerError) })},
	"otelgin":   {otelgin.Middleware("orders")},
	"envelope":  {envelope},
	"recommended": {
		gin.LoggerWithWriter(io.Discard), otelgin.Middleware("orders"), requestid.New(), allowed(), gzip.Gzip(gzip.DefaultCompression),
	},
}

func allowed() gin.HandlerFunc {
	return cors.New(cors.Config{AllowOrigins: []string{"https://shop.example"}, AllowMethods: []string{"POST"}})
}

// envelope adds a body to each response without one, as many services do.
func envelope(c *gin.Context) {
	c.Next()
	if !c.Writer.Written() && c.Writer.Status() >= http.StatusBadRequest {
		c.JSON(c.Writer.Status(), gin.H{"status": c.Writer.Status()})
	}
}

// kinds are the handlers.
var kinds = map[string]gin.HandlerFunc{
	"json":     func(c *gin.Context) { c.JSON(http.StatusCreated, gin.H{"id": 7}) },
	"text":     func(c *gin.Context) { c.String(http.StatusOK, stack.Text) },
	"untyped":  func(c *gin.Context) { _, _ = c.Writer.Write(stack.Untyped) },
	"empty":    func(c *gin.Context) { c.Status(http.StatusNoContent) },
	"status":   func(c *gin.Context) { c.Status(http.StatusAccepted) },
	"silent":   func(*gin.Context) {},
	"redirect": func(c *gin.Context) { c.Redirect(http.StatusSeeOther, "/orders/7") },
	"refused":  func(c *gin.Context) { c.AbortWithStatusJSON(http.StatusConflict, gin.H{"error": "taken"}) },
	"missing":  func(c *gin.Context) { c.Status(http.StatusNotFound) },
	"failed":   func(c *gin.Context) { _ = c.AbortWithError(http.StatusInternalServerError, errors.New("database")) },
	"length": func(c *gin.Context) {
		c.Header("Content-Length", strconv.Itoa(len(stack.Declared)))
		c.Data(http.StatusOK, "application/octet-stream", []byte(stack.Declared))
	},
	"stream": func(c *gin.Context) {
		c.Header("Content-Type", "text/event-stream")
		parts := stack.Parts
		c.Stream(func(w io.Writer) bool {
			_, _ = io.WriteString(w, parts[0])
			parts = parts[1:]
			return len(parts) > 0
		})
	},
	"copied": func(c *gin.Context) {
		c.DataFromReader(http.StatusOK, -1, "text/plain", strings.NewReader(stack.Copied), nil)
	},
	"file": func(c *gin.Context) {
		http.ServeContent(c.Writer, c.Request, "invoice.txt", time.Unix(0, 0), strings.NewReader(stack.Text))
	},
	"compressed": func(c *gin.Context) {
		c.Header("Content-Encoding", "gzip")
		c.Data(http.StatusOK, "text/plain", stack.Compressed)
	},
	"large": func(c *gin.Context) {
		c.Header("Content-Type", "text/plain")
		for range 3 {
			_, _ = c.Writer.WriteString(stack.Large)
		}
	},
	"panics": func(c *gin.Context) {
		c.Header("X-Half", "1")
		panic(stack.PanicValue)
	},
	"fields": func(c *gin.Context) {
		c.Writer.Header()["X-Many"] = []string{"1", "2"}
		c.Writer.Header().Del("Vary")
		c.String(http.StatusOK, "ok")
	},
}

func TestStacks(t *testing.T) {
	t.Parallel()
	stack.Run(t, stack.Framework{
		Layers: slices.Sorted(maps.Keys(layers)),
		Serve: func(t *testing.T, guard *protocol.Guard, routes []stack.Route) string {
			t.Helper()
			engine := gin.New()
			engine.Use(gin.RecoveryWithWriter(io.Discard))
			guarded := reprisegin.Middleware(guard, reprisegin.Unscoped)
			for _, r := range routes {
				engine.POST(r.Path, append(stack.Chain(r, layers, guarded), func(c *gin.Context) {
					r.Ran()
					kinds[r.Kind](c)
				})...)
			}
			return stack.Serve(t, engine.Handler())
		},
		Differences: differences,
	})
}

var differences = []stack.Difference{
	{
		Answer: stack.First, Kinds: []string{"panics"},
		Reason: "the fields of a response that was never sent are not those of the recovery's 500",
	},
	{
		Layers: []string{"cors", "recommended"}, Position: stack.Inside, Answer: stack.Replay,
		Fields: []string{"Access-Control-Allow-Origin"},
		Reason: "CORS fields answer one origin and are never kept (R14): CORS belongs before the middleware",
	},
	{
		Layers: []string{"requestid", "recommended"}, Position: stack.Inside, Answer: stack.Replay,
		Fields: []string{"X-Request-Id"},
		Reason: "an ID names one request and is never kept (R14): it belongs before the middleware",
	},
	{
		Layers: []string{"gzip", "recommended"}, Position: stack.Outside, Answer: stack.First,
		Kinds: []string{"untyped"}, Fields: []string{"Content-Type"},
		Reason: "net/http guesses no media type for compressed bytes; our middleware guesses it before they are compressed (R16)",
	},
	{
		Layers: []string{"timeout"}, Position: stack.Outside, Answer: stack.First,
		Kinds: []string{"stream"}, Fields: []string{"Content-Type"}, Optional: true,
		Reason: "without our middleware this layer, before 1.2, loses the header of a handler that flushes",
	},
	{
		Layers: []string{"timeout"}, Position: stack.Outside, Answer: stack.Replay,
		Kinds: []string{"stream"}, Fields: []string{"Content-Type"}, Optional: true,
		Reason: "this layer, from 1.2 on, loses the header of a handler that flushes, and a replay does not flush",
	},
	{
		Layers: []string{"gzip", "recommended"}, Position: stack.Outside, Answer: stack.First,
		Kinds: []string{"failed"}, Fields: []string{"Content-Encoding", "Vary"}, Optional: true,
		Reason: "AbortWithError without our middleware sends the header before this layer takes its Content-Encoding back",
	},
}

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
