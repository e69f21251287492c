package labfiber3_test

import (
	"bufio"
	"context"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gofiber/fiber/v3"
	"github.com/gofiber/fiber/v3/middleware/adaptor"
	"github.com/gofiber/fiber/v3/middleware/compress"
	"github.com/gofiber/fiber/v3/middleware/cors"
	"github.com/gofiber/fiber/v3/middleware/etag"
	"github.com/gofiber/fiber/v3/middleware/helmet"
	"github.com/gofiber/fiber/v3/middleware/limiter"
	"github.com/gofiber/fiber/v3/middleware/recover"
	"github.com/gofiber/fiber/v3/middleware/requestid"
	"github.com/gofiber/fiber/v3/middleware/session"
	"github.com/gofiber/fiber/v3/middleware/timeout"
	"github.com/valyala/fasthttp"

	reprisefiber3 "github.com/reprise-go/reprise/adapters/fiber3"
	"github.com/reprise-go/reprise/lab/draws"
	"github.com/reprise-go/reprise/lab/internal/labtest"
)

// drawn are the layers of draws, by name.
var drawn = map[string]fiber.Handler{
	"compress":  compress.New(),
	"cors":      cors.New(cors.Config{AllowOrigins: []string{"https://shop.example"}}),
	"etag.weak": etag.New(etag.Config{Weak: true}),
	"helmet":    helmet.New(),
	"limiter":   limiter.New(limiter.Config{Max: 1_000_000_000, Expiration: time.Hour}),
	"session":   session.New(),
	"etag":      etag.New(),
	"recover":   recover.New(),
	"requestid": requestid.New(requestid.Config{Generator: func() string { return "id" }}),
	"timeout": func(c fiber.Ctx) error {
		if c.Context().Err() != nil { // it would not wait for the handler, which goes on in another draw's request then
			return c.Next()
		}
		return drawnTimeout(c)
	},
	"deadline": func(c fiber.Ctx) error { // that has passed, and that its layer does not answer
		ctx, cancel := context.WithDeadline(c.Context(), time.Unix(0, 0))
		defer cancel()
		c.SetContext(ctx)
		return c.Next()
	},
	"fields": func(c fiber.Ctx) error {
		c.Set("X-A", "1")
		c.Set("Vary", "Origin")
		return c.Next()
	},
	"status": func(c fiber.Ctx) error { return c.Status(fiber.StatusAccepted).Next() },
}

var drawnTimeout = timeout.New(func(c fiber.Ctx) error { return c.Next() }, timeout.Config{Timeout: time.Minute})

func TestDraws(t *testing.T) {
	t.Parallel()
	draws.Run(t, labtest.RaceEnabled, func(t *testing.T, cases *draws.Cases) *draws.Framework {
		t.Helper()
		caseOf := func(c fiber.Ctx) *draws.Case { return cases.Find(c.Get(draws.CaseField)) }
		layer := func(names func(*draws.Case) []string, n int) fiber.Handler {
			return func(c fiber.Ctx) error {
				if stack := names(caseOf(c)); n < len(stack) {
					return drawn[stack[n]](c)
				}
				return c.Next()
			}
		}
		outside := func(c *draws.Case) []string { return c.Outside }
		inside := func(c *draws.Case) []string { return c.Inside }
		build := func(group bool) *fiber.App {
			app := fiber.New(fiber.Config{IdleTimeout: time.Second, ErrorHandler: func(c fiber.Ctx, err error) error {
				return failFiber(c, err, caseOf(c).Failure)
			}})
			chain := []any{
				layer(outside, 0), layer(outside, 1),
				func(c fiber.Ctx) error {
					one := caseOf(c)
					defer one.Watch()
					if one.Guard == nil {
						return c.Next()
					}
					return reprisefiber3.Middleware(one.Guard, reprisefiber3.Unscoped)(c)
				},
				layer(inside, 0), layer(inside, 1),
				func(c fiber.Ctx) error { return runFiber(c, caseOf(c)) },
			}
			app.Use(recover.New()) // fasthttp recovers no panic
			if group {
				app.Use(chain[0], chain[1])
				app.Group("/", chain[2]).Post("/draw", chain[3], chain[4:]...)
			} else {
				app.Post("/draw", chain[0], chain[1:]...)
			}
			return app
		}
		tested, hosted := build(false), build(false)
		bare := &fasthttp.Server{Handler: build(false).Handler(), IdleTimeout: time.Second}
		return &draws.Framework{
			Name: "Fiber 3",
			Hosts: []draws.Host{
				{Name: "its own server", Addr: serve(t, build(false)), Protos: []string{"1.1", "1.1", "1.1", "1.0"}},
				{Name: "a group", Addr: serve(t, build(true)), Protos: []string{"1.1"}},
				{Name: "app.Test", Addr: "draws", Protos: []string{"1.1"}, Do: func(r *http.Request) (*http.Response, error) { return tested.Test(r, fiber.TestConfig{}) }},
				draws.Serve(t, "adaptor.FiberApp", adaptor.FiberApp(hosted)),
				{Name: "fasthttp.Server", Addr: draws.Listen(t, bare.Serve, bare.Shutdown), Protos: []string{"1.1", "1.1", "1.0"}},
			},
			Layers:     slices.Sorted(maps.Keys(drawn)),
			Ops:        draws.FiberOps,
			Coders:     []string{"compress"},
			Fresh:      map[string][]string{"cors": {"Access-Control-Allow-Origin"}, "requestid": {"X-Request-Id"}, "limiter": draws.RateFields},
			Documented: slices.Concat(draws.FiberDocumented, documented),
		}
	})
}

// documented are the differences of Fiber v3 alone.
var documented = []draws.Difference{
	{
		Rule: "R13: of two layers that set a tag, the one outside sees the lines of the header in another order", Fields: []string{"Etag"},
		Applies: func(d *draws.Draw, _ *draws.Seen) bool {
			return d.Has(d.Outside, "etag", "etag.weak") && d.Has(d.Inside, "etag", "etag.weak")
		},
	},
	{
		Rule: "a session of Fiber is a new one for each request without a cookie", Fields: []string{"Set-Cookie"},
		Applies: func(d *draws.Draw, _ *draws.Seen) bool { return d.Has(slices.Concat(d.Outside, d.Inside), "session") },
	},
	{
		Rule: "R23: an outer deadline has no effect on a run, and the timeout inside, which also recovers panics, is in use", Ends: true,
		Applies: func(d *draws.Draw, _ *draws.Seen) bool {
			return d.Has(d.Outside, "deadline") && d.Has(d.Inside, "timeout")
		},
	},
	{
		Rule: "adaptor.FiberApp sends a Content-Length as it was set, which fasthttp computes", Ends: true,
		Applies: func(d *draws.Draw, _ *draws.Seen) bool {
			return d.Host == "adaptor.FiberApp" && d.Does("length", "file", "sendfile")
		},
	},
	{
		Rule: "R16, R17: adaptor.FiberApp gives an empty response a type, and sends trailers as fields", Answer: draws.Retry, Fields: []string{"Content-Type", "X-Sum", "X-End"},
		Applies: func(d *draws.Draw, _ *draws.Seen) bool { return d.Host == "adaptor.FiberApp" },
	},
	{
		Rule: "fasthttp breaks an empty stream with trailers off for HTTP/1.0; the adapter sends an empty body", Answer: draws.First,
		Applies: func(d *draws.Draw, _ *draws.Seen) bool {
			return d.Proto == "1.0" && d.Does("stream") && d.Does("trailer")
		},
	},
	{
		Rule: "R13: fasthttp changes the order of lines when it removes the length of a stream, and a replay has the handler's", Answer: draws.Retry, Fields: []string{"X-A", "X-B", "Vary", "Link", "Etag", "Location", "Cache-Control", "Content-Language", "Content-Encoding"},
		Applies: func(d *draws.Draw, _ *draws.Seen) bool { return d.Does("stream", "file") && d.Does("add") },
	},
}

// failFiber is the error handler of a draw.
func failFiber(c fiber.Ctx, err error, failure string) error {
	switch failure {
	case "own":
		return fiber.DefaultErrorHandler(c, err)
	case "redirect":
		return c.Redirect().Status(fiber.StatusSeeOther).To("/failed")
	default:
		return c.Status(fiber.StatusOK).JSON(fiber.Map{"error": "hidden"})
	}
}

// runFiber executes the steps of a draw as handlers of Fiber do.
func runFiber(c fiber.Ctx, one *draws.Case) (err error) {
	type key struct{}
	one.Ran()
	header := &c.Response().Header
	for _, s := range one.Steps {
		switch s.Op {
		case "set", "trailer":
			c.Set(s.Name, s.Value)
		case "add":
			header.Add(s.Name, s.Value)
		case "del":
			header.Del(s.Name)
		case "status":
			c.Status(s.N)
		case "write":
			_, err = c.WriteString(s.Body())
		case "string":
			_, err = c.WriteString(s.Body())
		case "copy":
			_, err = io.Copy(c, strings.NewReader(s.Body()))
		case "length":
			c.Set(fiber.HeaderContentLength, strconv.Itoa(max(one.Total()+s.N, 0)))
		case "announce":
			err = header.AddTrailer(s.Name)
		case "json":
			err = c.Status(s.N).JSON(fiber.Map{"n": 1})
		case "text":
			err = c.Status(s.N).SendString("text")
		case "empty":
			err = c.SendStatus(s.N)
		case "redirect":
			err = c.Redirect().Status(fiber.StatusSeeOther).To("/orders/7")
		case "file":
			err = c.SendStream(strings.NewReader(s.Body()), s.N)
		case "stream":
			rest := s.Body()
			c.RequestCtx().SetBodyStreamWriter(func(w *bufio.Writer) {
				for rest != "" {
					n := min(len(rest), 1000)
					_, _ = w.WriteString(rest[:n])
					_ = w.Flush()
					rest = rest[n:]
				}
			})
		case "sendfile":
			err = c.SendFile("serve_test.go")
		case "fail":
			return fiber.NewError(s.N, "failed")
		case "error":
			return draws.ErrPlain
		case "panic":
			panic(draws.PanicValue)
		case "value":
			c.SetContext(context.WithValue(c.Context(), key{}, 1))
		case "deadline":
			ctx, cancel := context.WithTimeout(c.Context(), time.Minute)
			defer cancel() //nolint:gocritic // at the end of the handler, as handlers do
			c.SetContext(ctx)
		case "background":
			c.SetContext(context.Background())
		case "reset":
			c.RequestCtx().ResetUserValues()
		}
		if err != nil {
			return err
		}
	}
	return nil
}
