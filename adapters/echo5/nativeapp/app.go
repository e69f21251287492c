// Package nativeapp serves the application of the adapter suite natively with Echo v5.
package nativeapp

import (
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/labstack/echo/v5"

	repriseecho5 "github.com/reprise-go/reprise/adapters/echo5"
	"github.com/reprise-go/reprise/conformance/adaptertest"
	"github.com/reprise-go/reprise/conformance/adaptertest/testapp"
	"github.com/reprise-go/reprise/core/protocol"
)

// New makes the server of the adapter for Echo v5.
func New(a *testapp.App) testapp.Server {
	e := echo.New()
	e.Logger = a.Log
	if a.Outer {
		e.Use(outer)
	}
	if a.Limit > 0 {
		e.Use(func(next echo.HandlerFunc) echo.HandlerFunc {
			return func(c *echo.Context) error {
				c.Request().Body = bounded{http.MaxBytesReader(nil, c.Request().Body, int64(a.Limit))}
				return next(c)
			}
		})
	}
	if a.OuterBody != "" {
		e.Use(func(next echo.HandlerFunc) echo.HandlerFunc {
			return func(c *echo.Context) error {
				a.ReadBody(c.Request().Body, func() { _ = c.Bind(new(struct{})) })
				return next(c)
			}
		})
	}
	e.GET("/executions/*", func(c *echo.Context) error {
		return c.JSONBlob(http.StatusOK, a.Report(strings.TrimPrefix(c.Request().URL.EscapedPath(), "/executions/")))
	})
	e.GET("/healthz", func(c *echo.Context) error { return c.NoContent(http.StatusOK) })

	// A layer is one per guard, and the handlers behind it one for all: so a route is
	// wrapped once.
	protect := func(next echo.HandlerFunc) echo.HandlerFunc {
		protected := testapp.NewGuarded(a, func(guard *protocol.Guard) echo.HandlerFunc { return repriseecho5.Middleware(guard, tenant)(next) })
		return func(c *echo.Context) error { return protected.Of(c.Request().Method, c.Request().URL.EscapedPath())(c) }
	}
	// Without a route. Before 5.3 a group ran its layers only for its routes.
	e.Group("/u", protect).RouteNotFound("/*", func(*echo.Context) error { return echo.ErrNotFound })
	if a.Inner == nil {
		return serve(a, e, protect)
	}
	return serve(a, e, protect, repriseecho5.Middleware(a.Inner, tenant))
}

// bounded is a body whose limit is reported as by Echo's BodyLimit, whose package would
// bring requirements that the adapter does not have.
type bounded struct{ io.ReadCloser }

func (b bounded) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		err = echo.ErrStatusRequestEntityTooLarge
	}
	return n, err
}

// NewBare makes a server without the adapter, which benchmarks compare with.
func NewBare(a *testapp.App) testapp.Server { return serve(a, echo.New()) }

// serve adds the handler behind layers.
func serve(a *testapp.App, e *echo.Echo, layers ...echo.MiddlewareFunc) testapp.Server {
	e.Any("/t/*", func(c *echo.Context) error {
		call := &call{testapp.NetHTTPCall{W: c.Response(), R: c.Request()}, c}
		return a.Run(c.Request().Context(), call, strings.TrimPrefix(call.RawPath(), "/t/"))
	}, layers...)
	return testapp.NetHTTPServer{HTTP: &http.Server{
		Handler: e, ReadHeaderTimeout: time.Minute,
		ErrorLog: slog.NewLogLogger(a.Log.Handler(), slog.LevelError),
	}}
}

func tenant(c *echo.Context) (string, error) {
	return testapp.TenantOf(c.Request().Header.Values(adaptertest.TenantHeader))
}

// outer is a layer outside of the middleware. The first byte takes the status that Echo's
// response has.
func outer(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c *echo.Context) error {
		o := testapp.NewOuter(c.Request().URL.Path, c.Request().Header.Get("Origin"))
		for _, f := range o.Fields {
			c.Response().Header().Set(f[0], f[1])
		}
		if o.Status != 0 {
			response, err := echo.UnwrapResponse(c.Response())
			if err != nil {
				return err
			}
			response.Status = o.Status
		}
		return next(c)
	}
}

// call is a [testapp.Call] in Echo. The embedded call has the methods that Echo leaves to
// net/http.
type call struct {
	testapp.NetHTTPCall // all but the following; Echo's response is its writer

	c *echo.Context
}

// Inform goes past Echo's response, which takes any status as the final one.
func (e *call) Inform(status int, fields []adaptertest.Pair) {
	w := e.c.Response()
	if response, err := echo.UnwrapResponse(w); err == nil {
		w = response.ResponseWriter
	}
	(&testapp.NetHTTPCall{W: w}).Inform(status, fields)
}

// SetStatusOnly is the idiom of Echo's handlers for an empty response.
func (e *call) SetStatusOnly(status int) error { return e.c.NoContent(status) }

func (e *call) Fail(status int) error { return echo.NewHTTPError(status, http.StatusText(status)) }
