package labfiber_test

import (
	"bufio"
	"context"
	"io"
	"maps"
	"net"
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
		tested := build(false)
		return &draws.Framework{
			Name: "Fiber 2",
			Hosts: []draws.Host{
				{Name: "its own server", Addr: serve(t, build(false)), Protos: []string{"1.1", "1.1", "1.1", "1.0"}},
				{Name: "a group", Addr: serve(t, build(true)), Protos: []string{"1.1"}},
				{Name: "app.Test", Addr: "draws", Protos: []string{"1.1"}, Do: func(r *http.Request) (*http.Response, error) { return tested.Test(r, -1) }},
				{Name: "fasthttp.Server", Addr: serveFasthttp(t, build(false).Handler()), Protos: []string{"1.1", "1.1", "1.0"}},
			},
			Layers:     slices.Sorted(maps.Keys(drawn)),
			Ops:        fiberOps,
			Coders:     []string{"compress"},
			Fresh:      map[string][]string{"cors": {"Access-Control-Allow-Origin"}, "requestid": {"X-Request-Id"}, "limiter": rateFields},
			Documented: documented,
		}
	})
}

// serveFasthttp serves a handler with a server of fasthttp until the test ends.
func serveFasthttp(t *testing.T, handler fasthttp.RequestHandler) (addr string) {
	t.Helper()
	ln, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &fasthttp.Server{Handler: handler, IdleTimeout: time.Second}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ln) }()
	t.Cleanup(func() {
		if err := server.Shutdown(); err != nil {
			t.Error(err)
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return ln.Addr().String()
}

// fiberOps are the steps that Fiber has.
var fiberOps = []string{
	"set", "add", "del", "status", "write", "string", "copy", "length", "announce", "trailer", "json", "text", "empty", "redirect", "file", "stream", "sendfile",
	"fail", "error", "panic", "value", "deadline", "background", "reset",
}

// rateFields are the fields of the limiter.
var rateFields = []string{"X-Ratelimit-Limit", "X-Ratelimit-Remaining", "X-Ratelimit-Reset"}

// documented are the differences of Fiber.
var documented = []draws.Difference{
	{
		Rule: "fasthttp breaks off, or never ends, a stream whose length is set later; the adapter sends what it read", Ends: true,
		Applies: func(d *draws.Draw, _ *draws.Seen) bool { return d.Does("stream") && d.Does("length") },
	},
	{
		Rule: "R33: Fiber writes no header, so that a panic after a status without a body leaves no response that was begun", Ends: true,
		Applies: func(d *draws.Draw, s *draws.Seen) bool { return s.Panicked && d.Policy == draws.AtMostOnce },
	},
	{
		Rule: "SendFile takes Accept-Encoding from its request, so that a layer outside compresses the replay and not the first response", Answer: draws.Retry, Fields: []string{"Content-Encoding", "Vary", "Etag", "framing", "Content-Length"},
		Applies: func(d *draws.Draw, s *draws.Seen) bool { return s.Outer && d.Does("sendfile") },
	},
	{
		Ends: true, Rule: "R33: a declared length is the adapter's to enforce, also where a layer outside reads the body and computes its length",
		Applies: func(d *draws.Draw, _ *draws.Seen) bool {
			return d.Has(d.Outside, "etag", "etag.weak") && d.Does("length", "file")
		},
	},
	{
		Rule: "the limiter counts each request that reaches it", Fields: rateFields[1:],
		Applies: func(d *draws.Draw, _ *draws.Seen) bool { return d.Has(slices.Concat(d.Outside, d.Inside), "limiter") },
	},
	{
		Rule: "R16: fasthttp gives a 304 with a length a type, and a replay has no length", Answer: draws.Retry, Fields: []string{"Content-Type"},
		Applies: func(_ *draws.Draw, s *draws.Seen) bool { return s.Status == fiber.StatusNotModified },
	},
	{
		Rule: "fasthttp takes no length with a stream while the status allows no body, and its response has no end then; the adapter sends one",
		Applies: func(d *draws.Draw, _ *draws.Seen) bool {
			return d.Does("stream", "file", "sendfile") && slices.ContainsFunc(d.Steps, func(s draws.Step) bool { return s.N == fiber.StatusNoContent || s.N == fiber.StatusNotModified })
		},
	},
	{
		Rule: "R16: fasthttp gives an empty stream a type, and an empty body none", Fields: []string{"Content-Type"},
		Applies: func(d *draws.Draw, _ *draws.Seen) bool { return d.Does("stream", "file") },
	},
	{
		Rule: "R17: fasthttp sends a trailer that was announced and never set with an empty value, and a replay none", Fields: []string{"trailers"},
		Applies: func(d *draws.Draw, _ *draws.Seen) bool { return d.Does("announce") },
	},
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
