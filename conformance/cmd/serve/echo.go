package serve

import (
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	repriseecho "github.com/reprise-go/reprise/adapters/echo"
	"github.com/reprise-go/reprise/conformance"
	"github.com/reprise-go/reprise/core/protocol"
)

// newEcho makes the server of the adapter for Echo.
func newEcho(a *app) native {
	e := echo.New()
	e.Logger.SetOutput(slog.NewLogLogger(a.log.Handler(), slog.LevelWarn).Writer()) //nolint:forbidigo // the way from a writer to slog
	if a.outer {
		e.Use(echoOuter)
	}
	e.GET("/executions/*", func(c echo.Context) error {
		return c.JSONBlob(http.StatusOK, a.runs.report(strings.TrimPrefix(c.Request().URL.EscapedPath(), "/executions/")))
	})
	e.GET("/healthz", func(c echo.Context) error { return c.NoContent(http.StatusOK) })

	// A layer is one per guard, and the handlers behind it one for all: so that what it protects is made once.
	protect := func(next echo.HandlerFunc) echo.HandlerFunc {
		protected := newGuarded(a, func(guard *protocol.Guard) echo.HandlerFunc { return repriseecho.Middleware(guard, echoTenant)(next) })
		return func(c echo.Context) error { return protected.of(c.Request().Method, c.Request().URL.EscapedPath())(c) }
	}
	e.Any("/t/*", func(c echo.Context) error {
		call := &echoCall{netHTTPCall{c.Response(), c.Request()}, c}
		return a.run(c.Request().Context(), call, strings.TrimPrefix(call.rawPath(), "/t/"))
	}, protect)
	e.Group("/u", protect) // without a route of its own
	return netHTTPServer{&http.Server{
		Handler: e, ReadHeaderTimeout: time.Minute,
		ErrorLog: slog.NewLogLogger(a.log.Handler(), slog.LevelError),
	}}
}

func echoTenant(c echo.Context) (string, error) {
	return tenantOf(c.Request().Header.Values(conformance.TenantHeader))
}

// echoOuter is a layer outside of the middleware. The first byte takes the status that Echo's response has.
func echoOuter(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		o := newOuter(c.Request().URL.Path, c.Request().Header.Get("Origin"))
		for _, f := range o.fields {
			c.Response().Header().Set(f[0], f[1])
		}
		if o.status != 0 {
			c.Response().Status = o.status
		}
		return next(c)
	}
}

// echoCall is a [call] in Echo. What Echo leaves to net/http is the embedded call's.
type echoCall struct {
	netHTTPCall // all but the following; Echo's response is its writer

	c echo.Context
}

// inform goes past Echo's response, which takes any status as the final one.
func (e *echoCall) inform(status int, fields []conformance.Pair) {
	(&netHTTPCall{w: e.c.Response().Writer}).inform(status, fields)
}

func (e *echoCall) flush() { e.c.Response().Flush() }

func (e *echoCall) fail(status int) error { return echo.NewHTTPError(status) }
