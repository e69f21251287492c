package labfiber_test

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

	"github.com/gofiber/fiber/v2"
	"github.com/gofiber/fiber/v2/middleware/compress"
	"github.com/gofiber/fiber/v2/middleware/cors"
	"github.com/gofiber/fiber/v2/middleware/etag"
	"github.com/gofiber/fiber/v2/middleware/limiter"
	"github.com/gofiber/fiber/v2/middleware/recover"
	"github.com/gofiber/fiber/v2/middleware/requestid"
	"github.com/gofiber/fiber/v2/middleware/timeout"
	"github.com/valyala/fasthttp"

	reprisefiber "github.com/reprise-go/reprise/adapters/fiber"
	"github.com/reprise-go/reprise/lab/draws"
	"github.com/reprise-go/reprise/lab/internal/labtest"
)

// drawn are the layers of draws, by name.
var drawn = map[string]fiber.Handler{
	"compress":  compress.New(),
	"cors":      cors.New(cors.Config{AllowOrigins: "https://shop.example"}),
	"etag.weak": etag.New(etag.Config{Weak: true}),
	"limiter":   limiter.New(limiter.Config{Max: 1_000_000_000, Expiration: time.Hour}),
	"etag":      etag.New(),
	"recover":   recover.New(),
	"requestid": requestid.New(requestid.Config{Generator: func() string { return "id" }}),
	"timeout":   timeout.NewWithContext(func(c *fiber.Ctx) error { return c.Next() }, time.Minute),
	"deadline": func(c *fiber.Ctx) error { // that has passed, and that its layer does not answer
		ctx, cancel := context.WithDeadline(c.UserContext(), time.Unix(0, 0))
		defer cancel()
		c.SetUserContext(ctx)
		return c.Next()
	},
	"fields": func(c *fiber.Ctx) error {
		c.Set("X-A", "1")
		c.Set("Vary", "Origin")
		return c.Next()
	},
	"status": func(c *fiber.Ctx) error { return c.Status(fiber.StatusAccepted).Next() },
}

func TestDraws(t *testing.T) {
	t.Parallel()
	draws.Run(t, labtest.RaceEnabled, func(t *testing.T, cases *draws.Cases) *draws.Framework {
		t.Helper()
		caseOf := func(c *fiber.Ctx) *draws.Case { return cases.Find(c.Get(draws.CaseField)) }
		layer := func(names func(*draws.Case) []string, n int) fiber.Handler {
			return func(c *fiber.Ctx) error {
				if stack := names(caseOf(c)); n < len(stack) {
					return drawn[stack[n]](c)
				}
				return c.Next()
			}
		}
		outside := func(c *draws.Case) []string { return c.Outside }
		inside := func(c *draws.Case) []string { return c.Inside }
		build := func(group bool) *fiber.App {
			app := fiber.New(fiber.Config{IdleTimeout: time.Second, DisableStartupMessage: true, ErrorHandler: func(c *fiber.Ctx, err error) error {
				return failFiber(c, err, caseOf(c).Failure)
			}})
			chain := []fiber.Handler{
				layer(outside, 0), layer(outside, 1),
				func(c *fiber.Ctx) error {
					one := caseOf(c)
					defer one.Watch()
					if one.Guard == nil {
						return c.Next()
					}
					return reprisefiber.Middleware(one.Guard, reprisefiber.Unscoped)(c)
				},
				layer(inside, 0), layer(inside, 1),
				func(c *fiber.Ctx) error { return runFiber(c, caseOf(c)) },
			}
			app.Use(recover.New()) // fasthttp recovers no panic
			if group {
				app.Use(chain[0], chain[1])
				app.Group("/", chain[2]).Post("/draw", chain[3:]...)
			} else {
				app.Post("/draw", chain...)
			}
			return app
		}
		tested, bare := build(false), &fasthttp.Server{Handler: build(false).Handler(), IdleTimeout: time.Second}
		return &draws.Framework{
			Name: "Fiber 2",
			Hosts: []draws.Host{
				{Name: "its own server", Addr: serve(t, build(false)), Protos: []string{"1.1", "1.1", "1.1", "1.0"}},
				{Name: "a group", Addr: serve(t, build(true)), Protos: []string{"1.1"}},
				{Name: "app.Test", Addr: "draws", Protos: []string{"1.1"}, Do: func(r *http.Request) (*http.Response, error) { return tested.Test(r, -1) }},
				{Name: "fasthttp.Server", Addr: draws.Listen(t, bare.Serve, bare.Shutdown), Protos: []string{"1.1", "1.1", "1.0"}},
			},
			Layers:     slices.Sorted(maps.Keys(drawn)),
			Ops:        draws.FiberOps,
			Coders:     []string{"compress"},
			Fresh:      map[string][]string{"cors": {"Access-Control-Allow-Origin"}, "requestid": {"X-Request-Id"}, "limiter": draws.RateFields},
			Documented: draws.FiberDocumented,
		}
	})
}

// failFiber is the error handler of a draw.
func failFiber(c *fiber.Ctx, err error, failure string) error {
	switch failure {
	case "own":
		return fiber.DefaultErrorHandler(c, err)
	case "redirect":
		return c.Redirect("/failed", fiber.StatusSeeOther)
	default:
		return c.Status(fiber.StatusOK).JSON(fiber.Map{"error": "hidden"})
	}
}

// runFiber executes the steps of a draw as handlers of Fiber do.
func runFiber(c *fiber.Ctx, one *draws.Case) (err error) {
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
			err = c.Redirect("/orders/7", fiber.StatusSeeOther)
		case "file":
			err = c.SendStream(strings.NewReader(s.Body()), s.N)
		case "stream":
			rest := s.Body()
			c.Context().SetBodyStreamWriter(func(w *bufio.Writer) {
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
			c.SetUserContext(context.WithValue(c.UserContext(), key{}, 1))
		case "deadline":
			ctx, cancel := context.WithTimeout(c.UserContext(), time.Minute)
			defer cancel() //nolint:gocritic // at the end of the handler, as handlers do
			c.SetUserContext(ctx)
		case "background":
			c.SetUserContext(context.Background())
		case "reset":
			c.Context().ResetUserValues()
		}
		if err != nil {
			return err
		}
	}
	return nil
}
