// Package labecho_test has the layers of Echo and OpenTelemetry around the adapter for
// Echo.
package labecho_test

import (
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"
	"go.opentelemetry.io/contrib/instrumentation/github.com/labstack/echo/otelecho" //nolint:staticcheck // users have it, deprecated or not

	repriseecho "github.com/reprise-go/reprise/adapters/echo"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/lab/frameworks/stack"
	"github.com/reprise-go/reprise/lab/internal/labtest"
)

func TestMain(m *testing.M) { labtest.Main(m) }

// layers are the middlewares of Echo, by name, the outermost first.
var layers = map[string][]echo.MiddlewareFunc{
	"Gzip":           {middleware.Gzip()},
	"Gzip.MinLength": {middleware.GzipWithConfig(middleware.GzipConfig{MinLength: 200})},
	"CORS":           {allowed()},
	"RequestID":      {middleware.RequestID()},
	"BodyLimit":      {middleware.BodyLimit("1M")},
	"Timeout":        {middleware.TimeoutWithConfig(middleware.TimeoutConfig{Timeout: time.Minute})},
	"ContextTimeout": {middleware.ContextTimeout(time.Minute)},
	"Recover":        {middleware.RecoverWithConfig(middleware.RecoverConfig{DisablePrintStack: true})},
	"BodyDump":       {middleware.BodyDump(func(echo.Context, []byte, []byte) {})},
	"Secure":         {middleware.Secure()},
	"RequestLogger":  {logged()},
	"otelecho":       {otelecho.Middleware("orders")},
	"recommended":    {otelecho.Middleware("orders"), middleware.RequestID(), allowed(), middleware.Gzip(), middleware.BodyLimit("1M")},
}

func allowed() echo.MiddlewareFunc {
	return middleware.CORSWithConfig(middleware.CORSConfig{AllowOrigins: []string{"https://shop.example"}})
}

func logged() echo.MiddlewareFunc {
	return middleware.RequestLoggerWithConfig(middleware.RequestLoggerConfig{
		LogStatus: true, LogValuesFunc: func(echo.Context, middleware.RequestLoggerValues) error { return nil },
	})
}

// kinds are the handlers.
var kinds = map[string]echo.HandlerFunc{
	"json": func(c echo.Context) error { return c.JSON(http.StatusCreated, echo.Map{"id": 7}) },
	"text": func(c echo.Context) error { return c.String(http.StatusOK, stack.Text) },
	"untyped": func(c echo.Context) error {
		_, err := c.Response().Write(stack.Untyped)
		return err
	},
	"empty":    func(c echo.Context) error { return c.NoContent(http.StatusNoContent) },
	"status":   func(c echo.Context) error { return c.NoContent(http.StatusAccepted) },
	"silent":   func(echo.Context) error { return nil },
	"redirect": func(c echo.Context) error { return c.Redirect(http.StatusSeeOther, "/orders/7") },
	"refused":  func(echo.Context) error { return echo.NewHTTPError(http.StatusConflict, "taken") },
	"missing":  func(c echo.Context) error { return c.NoContent(http.StatusNotFound) },
	"failed":   func(echo.Context) error { return echo.ErrInternalServerError },
	"length": func(c echo.Context) error {
		c.Response().Header().Set("Content-Length", strconv.Itoa(len(stack.Declared)))
		return c.Blob(http.StatusOK, "application/octet-stream", []byte(stack.Declared))
	},
	"stream": func(c echo.Context) error {
		c.Response().Header().Set("Content-Type", "text/event-stream")
		for _, part := range stack.Parts {
			if _, err := io.WriteString(c.Response(), part); err != nil {
				return err
			}
			c.Response().Flush()
		}
		return nil
	},
	"copied": func(c echo.Context) error {
		return c.Stream(http.StatusOK, "text/plain", strings.NewReader(stack.Copied))
	},
	"file": func(c echo.Context) error {
		http.ServeContent(c.Response(), c.Request(), "invoice.txt", time.Unix(0, 0), strings.NewReader(stack.Text))
		return nil
	},
	"compressed": func(c echo.Context) error {
		c.Response().Header().Set("Content-Encoding", "gzip")
		return c.Blob(http.StatusOK, "text/plain", stack.Compressed)
	},
	"large": func(c echo.Context) error {
		c.Response().Header().Set("Content-Type", "text/plain")
		for range 3 {
			if _, err := io.WriteString(c.Response(), stack.Large); err != nil {
				return err
			}
		}
		return nil
	},
	"panics": func(c echo.Context) error {
		c.Response().Header().Set("X-Half", "1")
		panic(stack.PanicValue)
	},
	"fields": func(c echo.Context) error {
		c.Response().Header()["X-Many"] = []string{"1", "2"}
		c.Response().Header().Del("Vary")
		return c.String(http.StatusOK, "ok")
	},
}

func TestStacks(t *testing.T) {
	t.Parallel()
	stack.Run(t, stack.Framework{
		Layers: slices.Sorted(maps.Keys(layers)),
		Serve: func(t *testing.T, guard *protocol.Guard, routes []stack.Route) string {
			t.Helper()
			e := echo.New()
			e.Logger.SetOutput(io.Discard)
			e.Use(middleware.RecoverWithConfig(middleware.RecoverConfig{DisablePrintStack: true}))
			guarded := repriseecho.Middleware(guard, repriseecho.Unscoped)
			for _, r := range routes {
				e.POST(r.Path, func(c echo.Context) error {
					r.Ran()
					return kinds[r.Kind](c)
				}, stack.Chain(r, layers, guarded)...)
			}
			return stack.Serve(t, e)
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
		Layers: []string{"CORS", "recommended"}, Position: stack.Inside, Answer: stack.Replay,
		Fields: []string{"Access-Control-Allow-Origin"},
		Reason: "CORS fields answer one origin and are never kept (R14): CORS belongs outside",
	},
	{
		Layers: []string{"RequestID", "recommended"}, Position: stack.Inside, Answer: stack.Replay,
		Fields: []string{"X-Request-Id"},
		Reason: "an ID names one request and is never kept (R14): it belongs outside",
	},
	{
		Layers: []string{"Gzip", "recommended"}, Position: stack.Outside, Answer: stack.First,
		Kinds: []string{"refused", "failed"}, Fields: []string{"Content-Encoding"},
		Reason: "a returned error becomes its response inside, so the layer compresses it as it does any other",
	},
	{
		Layers: []string{"Gzip.MinLength"}, Position: stack.Outside, Answer: stack.Replay,
		Kinds: []string{"stream"}, Fields: []string{"Content-Encoding"},
		Reason: "the layer compresses what is flushed whatever its length; the replay is shorter than its minimum, and whole",
	},
	{
		Layers: []string{"Timeout"}, Position: stack.Outside, Answer: stack.First,
		Kinds: []string{"stream"}, Fields: []string{"status", "body", "Content-Type"},
		Reason: "Flush panics under this layer, with and without our middleware: the response that was held back is not sent, and the recovery answers (R33)",
	},
	{
		Layers: []string{"Timeout"}, Position: stack.Inside, Answer: stack.First,
		Kinds: []string{"stream"}, Fields: []string{"status", "body", "Content-Type"},
		Reason: "Flush panics under this layer: without our middleware the client gets an empty 200, with it the recovery's 500",
	},
}

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
