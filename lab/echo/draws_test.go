package labecho_test

import (
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"
	"go.opentelemetry.io/contrib/instrumentation/github.com/labstack/echo/otelecho" //nolint:staticcheck // users have it, deprecated or not

	repriseecho "github.com/reprise-go/reprise/adapters/echo"
	"github.com/reprise-go/reprise/lab/draws"
	"github.com/reprise-go/reprise/lab/internal/labtest"
)

// drawn are the layers of draws, by name.
var drawn = func() map[string]echo.MiddlewareFunc {
	all := map[string]echo.MiddlewareFunc{
		"Gzip":           middleware.Gzip(),
		"Gzip.MinLength": middleware.GzipWithConfig(middleware.GzipConfig{MinLength: 200}),
		"CORS":           middleware.CORSWithConfig(middleware.CORSConfig{AllowOrigins: []string{"https://shop.example"}}),
		"RequestID":      middleware.RequestIDWithConfig(middleware.RequestIDConfig{Generator: func() string { return "id" }}),
		"BodyLimit":      middleware.BodyLimit("1M"),
		"Timeout":        middleware.TimeoutWithConfig(middleware.TimeoutConfig{Timeout: time.Minute}),
		"ContextTimeout": middleware.ContextTimeout(time.Minute),
		"Recover":        middleware.RecoverWithConfig(middleware.RecoverConfig{DisablePrintStack: true}),
		"BodyDump":       middleware.BodyDump(func(echo.Context, []byte, []byte) {}),
		"Secure":         middleware.Secure(),
		"RequestLogger":  drawnLogger(false),
		"HandleError":    drawnLogger(true),
		"otelecho":       otelecho.Middleware("orders"),
		"hook": func(next echo.HandlerFunc) echo.HandlerFunc {
			return func(c echo.Context) error {
				c.Response().Before(func() { c.Response().Header().Set("X-Hook", "1") })
				return next(c)
			}
		},
	}
	for _, name := range []string{"embedding", "fields"} {
		all[name] = echo.WrapMiddleware(draws.Wrappers[name])
	}
	return all
}()

func drawnLogger(handleError bool) echo.MiddlewareFunc {
	return middleware.RequestLoggerWithConfig(middleware.RequestLoggerConfig{
		LogStatus: true, HandleError: handleError, LogValuesFunc: func(echo.Context, middleware.RequestLoggerValues) error { return nil },
	})
}

func TestDraws(t *testing.T) {
	t.Parallel()
	draws.Run(t, labtest.RaceEnabled, func(t *testing.T, cases *draws.Cases) *draws.Framework {
		t.Helper()
		caseOf := func(c echo.Context) *draws.Case { return cases.Find(c.Request().Header.Get(draws.CaseField)) }
		stack := func(next echo.HandlerFunc) echo.HandlerFunc {
			return func(c echo.Context) error { return stackOf(caseOf(c), next)(c) }
		}
		handler := func(c echo.Context) error { return runEcho(c, caseOf(c)) }
		route, instance := echo.New(), echo.New()
		for _, e := range []*echo.Echo{route, instance} {
			e.Logger.SetOutput(io.Discard)
			e.HTTPErrorHandler = func(err error, c echo.Context) { failEcho(e, err, c, caseOf(c).Failure) }
		}
		route.Group("", stack).POST("/draw", handler)
		instance.Use(stack)
		instance.POST("/draw", handler)
		return &draws.Framework{
			Name: "Echo 4",
			Hosts: []draws.Host{
				draws.Serve(t, "a route", route), draws.Serve(t, "an instance", instance),
				draws.Serve(t, "http.TimeoutHandler", http.TimeoutHandler(route, time.Minute, "late")),
			},
			Layers: slices.Sorted(maps.Keys(drawn)),
			Ops:    slices.Concat(draws.HTTPOps, []string{"fail", "error", "value", "deadline", "background", "request"}),
			Coders: []string{"Gzip", "Gzip.MinLength"}, Lazy: []string{"http.TimeoutHandler", "Timeout", "Gzip", "Gzip.MinLength"},
			Blind:      []string{"http.TimeoutHandler", "Timeout", "embedding", "fields", "Gzip", "Gzip.MinLength"},
			Documented: documented,
			Fresh:      map[string][]string{"CORS": {"Access-Control-Allow-Origin"}, "RequestID": {"X-Request-Id"}},
		}
	})
}

// documented are the differences of Echo.
var documented = []draws.Difference{
	{
		Rule:    "Timeout of Echo writes past the hooks and the encoding of the layers outside, and loses the answers of others; the adapter's goes through them",
		Fields:  []string{"status", "body", "Content-Type", "Content-Encoding", "Content-Length", "Vary", "framing", "X-Hook"},
		Applies: func(d *draws.Draw, _ *draws.Seen) bool { return len(d.Outside) > 0 && d.Has(d.Inside, "Timeout") },
	},
	{
		Rule: "Timeout of Echo loses the answer to an error that a layer inside has had answered; the adapter's is whole before",
		Applies: func(d *draws.Draw, _ *draws.Seen) bool {
			return d.Has(d.Outside, "Timeout") && d.Does("fail", "error")
		},
	},
	{
		Rule: "without a flusher in the layers outside, Flush of Echo panics; in the adapter it does nothing", Ends: true,
		Applies: func(d *draws.Draw, s *draws.Seen) bool {
			return (d.Host == "http.TimeoutHandler" || d.Has(slices.Concat(d.Outside, d.Inside), "Timeout")) && d.Does("flush", "stream")
		},
	},
	{
		Rule: "Flush of Echo writes the header without its hooks; the adapter writes it to the response outside, with them", Fields: []string{"X-Hook"},
		Applies: func(d *draws.Draw, _ *draws.Seen) bool { return d.Has(d.Outside, "hook") && d.Does("flush", "stream") },
	},
	{
		Rule:    "Gzip of Echo leaves an empty body unfinished that was flushed",
		Fields:  []string{"Content-Encoding", "Content-Length", "body", "framing"},
		Applies: func(d *draws.Draw, s *draws.Seen) bool { return s.Outer && d.Does("flush", "stream") },
	},
}

// failEcho is the error handler of a draw.
func failEcho(e *echo.Echo, err error, c echo.Context, failure string) {
	switch {
	case failure == "own":
		e.DefaultHTTPErrorHandler(err, c)
	case c.Response().Committed:
	case failure == "redirect":
		_ = c.Redirect(http.StatusSeeOther, "/failed")
	default:
		_ = c.JSON(http.StatusOK, echo.Map{"error": "hidden"})
	}
}

// stackOf puts the layers of a case around its handler.
func stackOf(one *draws.Case, h echo.HandlerFunc) echo.HandlerFunc {
	for _, name := range slices.Backward(one.Inside) {
		h = drawn[name](h)
	}
	if one.Guard != nil {
		h = repriseecho.Middleware(one.Guard, repriseecho.Unscoped)(h)
	}
	inner := h
	h = func(c echo.Context) error {
		defer one.Watch()
		return inner(c)
	}
	for _, name := range slices.Backward(one.Outside) {
		h = drawn[name](h)
	}
	return h
}

// runEcho executes the steps of a draw as handlers of Echo do.
func runEcho(c echo.Context, one *draws.Case) (err error) {
	one.Ran()
	for _, s := range one.Steps {
		switch s.Op {
		case "json":
			err = c.JSON(s.N, echo.Map{"n": 1})
		case "text":
			err = c.String(s.N, "text")
		case "empty":
			err = c.NoContent(s.N)
		case "redirect":
			err = c.Redirect(http.StatusSeeOther, "/orders/7")
		case "file":
			err = c.Stream(http.StatusOK, "text/plain", strings.NewReader(s.Body()))
		case "inform":
			c.Response().Header().Set("Link", "</style.css>")
			c.Response().Writer.WriteHeader(http.StatusEarlyHints)
		case "fail":
			return echo.NewHTTPError(s.N, "failed")
		case "error":
			return draws.ErrPlain
		case "value", "deadline", "background", "request":
			r, end := draws.Derive(c.Request(), c.Request().Context(), s.Op)
			defer end() //nolint:gocritic // at the end of the handler, as handlers do
			c.SetRequest(r)
		default:
			if !(draws.HTTP{W: c.Response(), R: c.Request()}).Do(one, s) {
				return nil
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}
