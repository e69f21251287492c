package labecho5_test

import (
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/labstack/echo/v5"
	"github.com/labstack/echo/v5/middleware"

	repriseecho5 "github.com/reprise-go/reprise/adapters/echo5"
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
		"BodyLimit":      middleware.BodyLimit(1 << 20),
		"ContextTimeout": middleware.ContextTimeout(time.Minute),
		"Recover":        middleware.RecoverWithConfig(middleware.RecoverConfig{DisablePrintStack: true}),
		"BodyDump":       middleware.BodyDump(func(*echo.Context, []byte, []byte, error) {}),
		"Secure":         middleware.Secure(),
		"RequestLogger":  drawnLogger(false),
		"HandleError":    drawnLogger(true),
		"hook": func(next echo.HandlerFunc) echo.HandlerFunc {
			return func(c *echo.Context) error {
				if r, err := echo.UnwrapResponse(c.Response()); err == nil {
					r.Before(func() { r.Header().Set("X-Hook", "1") })
				}
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
		LogStatus: true, HandleError: handleError, LogValuesFunc: func(*echo.Context, middleware.RequestLoggerValues) error { return nil },
	})
}

func TestDraws(t *testing.T) {
	t.Parallel()
	draws.Run(t, labtest.RaceEnabled, func(t *testing.T, cases *draws.Cases) *draws.Framework {
		t.Helper()
		caseOf := func(c *echo.Context) *draws.Case { return cases.Find(c.Request().Header.Get(draws.CaseField)) }
		stack := func(next echo.HandlerFunc) echo.HandlerFunc {
			return func(c *echo.Context) error { return stackOf(caseOf(c), next)(c) }
		}
		handler := func(c *echo.Context) error { return runEcho(c, caseOf(c)) }
		route, instance := echo.New(), echo.New()
		for _, e := range []*echo.Echo{route, instance} {
			e.Logger = slog.New(slog.DiscardHandler)
			e.HTTPErrorHandler = func(c *echo.Context, err error) { failEcho(err, c, caseOf(c).Failure) }
		}
		route.Group("", stack).POST("/draw", handler)
		instance.Use(stack)
		instance.POST("/draw", handler)
		return &draws.Framework{
			Name: "Echo 5",
			Hosts: []draws.Host{
				draws.Serve(t, "a route", route), draws.Serve(t, "an instance", instance),
				draws.Serve(t, "http.TimeoutHandler", http.TimeoutHandler(route, time.Minute, "late")),
			},
			Layers: slices.Sorted(maps.Keys(drawn)),
			Ops:    slices.Concat(draws.HTTPOps, []string{"fail", "error", "value", "deadline", "background", "request"}),
			Coders: []string{"Gzip", "Gzip.MinLength"}, Lazy: []string{"http.TimeoutHandler", "Gzip", "Gzip.MinLength"},
			Blind:      []string{"http.TimeoutHandler", "embedding", "fields", "Gzip", "Gzip.MinLength"},
			Documented: documented,
			Fresh:      map[string][]string{"CORS": {"Access-Control-Allow-Origin"}, "RequestID": {"X-Request-Id"}},
		}
	})
}

// documented are the differences of Echo.
var documented = []draws.Difference{
	{
		Rule: "Gzip of Echo 5 with a minimum breaks off some responses of several writes, whose records are whole", Ends: true, Fields: []string{"broken"},
		Applies: func(d *draws.Draw, _ *draws.Seen) bool { return d.Has(d.Outside, "Gzip.MinLength") && len(d.Steps) > 1 },
	},
	{
		Rule: "without a flusher in the layers outside, Flush of Echo panics; in the adapter it does nothing", Ends: true,
		Applies: func(d *draws.Draw, s *draws.Seen) bool {
			return d.Host == "http.TimeoutHandler" && d.Does("flush", "stream")
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
func failEcho(err error, c *echo.Context, failure string) {
	switch {
	case failure == "own":
		echo.DefaultHTTPErrorHandler(false)(c, err)
	case committed(c):
	case failure == "redirect":
		_ = c.Redirect(http.StatusSeeOther, "/failed")
	default:
		_ = c.JSON(http.StatusOK, map[string]any{"error": "hidden"})
	}
}

// committed reports whether the header was written.
func committed(c *echo.Context) bool {
	r, err := echo.UnwrapResponse(c.Response())
	return err == nil && r.Committed
}

// stackOf puts the layers of a case around its handler.
func stackOf(one *draws.Case, h echo.HandlerFunc) echo.HandlerFunc {
	for _, name := range slices.Backward(one.Inside) {
		h = drawn[name](h)
	}
	if one.Guard != nil {
		h = repriseecho5.Middleware(one.Guard, repriseecho5.Unscoped)(h)
	}
	inner := h
	h = func(c *echo.Context) error {
		defer one.Watch()
		return inner(c)
	}
	for _, name := range slices.Backward(one.Outside) {
		h = drawn[name](h)
	}
	return h
}

// runEcho executes the steps of a draw as handlers of Echo do.
func runEcho(c *echo.Context, one *draws.Case) (err error) {
	one.Ran()
	for _, s := range one.Steps {
		switch s.Op {
		case "json":
			err = c.JSON(s.N, map[string]any{"n": 1})
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
			if r, err := echo.UnwrapResponse(c.Response()); err == nil {
				r.ResponseWriter.WriteHeader(http.StatusEarlyHints)
			}
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
