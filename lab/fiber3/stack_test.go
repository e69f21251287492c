// Package labfiber3_test has the layers of Fiber around the adapter for Fiber v3. It does
// not look for leaked goroutines, as its siblings do: limiter, compress and SendFile
// start some that cannot be stopped.
package labfiber3_test

import (
	"bufio"
	"context"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gofiber/fiber/v3"
	"github.com/gofiber/fiber/v3/middleware/compress"
	"github.com/gofiber/fiber/v3/middleware/cors"
	"github.com/gofiber/fiber/v3/middleware/encryptcookie"
	"github.com/gofiber/fiber/v3/middleware/etag"
	"github.com/gofiber/fiber/v3/middleware/helmet"
	"github.com/gofiber/fiber/v3/middleware/idempotency"
	"github.com/gofiber/fiber/v3/middleware/limiter"
	"github.com/gofiber/fiber/v3/middleware/recover"
	"github.com/gofiber/fiber/v3/middleware/requestid"
	"github.com/gofiber/fiber/v3/middleware/session"
	"github.com/gofiber/fiber/v3/middleware/timeout"

	reprisefiber3 "github.com/reprise-go/reprise/adapters/fiber3"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/lab/frameworks/stack"
)

// layers are the middlewares of Fiber, by name, the outermost first. Its router takes
// handlers of any type.
var layers = map[string][]any{
	"compress":      {compress.New()},
	"compress.1":    {compress.New(compress.Config{Level: compress.LevelBestSpeed})},
	"cors":          {allowed()},
	"encryptcookie": {encryptcookie.New(encryptcookie.Config{Key: encryptcookie.GenerateKey(32)})},
	"etag":          {etag.New()},
	"etag.weak":     {etag.New(etag.Config{Weak: true})},
	"helmet":        {helmet.New()},
	"idempotency":   {idempotency.New(idempotency.Config{KeyHeaderValidate: func(string) error { return nil }})},
	"limiter":       {limited()},
	"recover":       {recover.New()},
	"requestid":     {requestid.New()},
	"session":       {session.New()},
	"timeout":       {timeout.New(func(c fiber.Ctx) error { return c.Next() }, timeout.Config{Timeout: time.Minute})},
	"recommended":   {requestid.New(), recover.New(), allowed(), compress.New(), helmet.New(), limited()},
}

func allowed() fiber.Handler {
	return cors.New(cors.Config{AllowOrigins: []string{"https://shop.example"}})
}

func limited() fiber.Handler {
	return limiter.New(limiter.Config{Max: 1_000_000, Expiration: time.Hour})
}

// kinds are the handlers.
var kinds = map[string]fiber.Handler{
	"json": func(c fiber.Ctx) error { return c.Status(fiber.StatusCreated).JSON(fiber.Map{"id": 7}) },
	"text": func(c fiber.Ctx) error { return c.SendString(stack.Text) },
	"untyped": func(c fiber.Ctx) error {
		_, err := c.Write(stack.Untyped)
		return err
	},
	"empty":    func(c fiber.Ctx) error { return c.SendStatus(fiber.StatusNoContent) },
	"status":   func(c fiber.Ctx) error { c.Status(fiber.StatusAccepted); return nil },
	"silent":   func(fiber.Ctx) error { return nil },
	"redirect": func(c fiber.Ctx) error { return c.Redirect().Status(fiber.StatusSeeOther).To("/orders/7") },
	"refused":  func(fiber.Ctx) error { return fiber.NewError(fiber.StatusConflict, "taken") },
	"missing":  func(c fiber.Ctx) error { c.Status(fiber.StatusNotFound); return nil },
	"failed":   func(fiber.Ctx) error { return fiber.ErrInternalServerError },
	"length": func(c fiber.Ctx) error {
		c.Set(fiber.HeaderContentLength, strconv.Itoa(len(stack.Declared)))
		c.Type("bin")
		return c.SendString(stack.Declared)
	},
	"stream": func(c fiber.Ctx) error {
		c.Set(fiber.HeaderContentType, "text/event-stream")
		return c.SendStreamWriter(func(w *bufio.Writer) {
			for _, part := range stack.Parts {
				_, _ = w.WriteString(part)
				_ = w.Flush()
			}
		})
	},
	"copied": func(c fiber.Ctx) error { return c.SendStream(strings.NewReader(stack.Copied), len(stack.Copied)) },
	"file":   func(c fiber.Ctx) error { return c.SendFile("stack_test.go") },
	"compressed": func(c fiber.Ctx) error {
		c.Set(fiber.HeaderContentEncoding, "gzip")
		c.Type("txt")
		return c.Send(stack.Compressed)
	},
	"large": func(c fiber.Ctx) error {
		c.Type("txt")
		for range 3 {
			if _, err := c.WriteString(stack.Large); err != nil {
				return err
			}
		}
		return nil
	},
	"panics": func(c fiber.Ctx) error {
		c.Set("X-Half", "1")
		panic(stack.PanicValue)
	},
	"fields": func(c fiber.Ctx) error {
		c.Response().Header.Add("X-Many", "1")
		c.Response().Header.Add("X-Many", "2")
		c.Response().Header.Del(fiber.HeaderVary)
		return c.SendString("ok")
	},
}

func TestStacks(t *testing.T) {
	t.Parallel()
	stack.Run(t, stack.Framework{
		Layers: slices.Sorted(maps.Keys(layers)),
		Serve: func(t *testing.T, guard *protocol.Guard, routes []stack.Route) string {
			t.Helper()
			app := fiber.New()
			app.Use(recover.New())
			guarded := reprisefiber3.Middleware(guard, reprisefiber3.Unscoped)
			for _, r := range routes {
				chain := append(stack.Chain(r, layers, any(guarded)), func(c fiber.Ctx) error {
					r.Ran()
					return kinds[r.Kind](c)
				})
				app.Post(r.Path, chain[0], chain[1:]...)
			}
			return serve(t, app)
		},
		Differences: differences,
	})
}

// serve serves an app on a free port of the loopback interface until the test ends.
func serve(t *testing.T, app *fiber.App) (addr string) {
	t.Helper()
	ln, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- app.Listener(ln, fiber.ListenConfig{DisableStartupMessage: true}) }()
	t.Cleanup(func() {
		stack.CloseIdle()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 10*time.Second)
		defer cancel()
		if err := app.ShutdownWithContext(ctx); err != nil {
			t.Error(err)
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return ln.Addr().String()
}

var differences = []stack.Difference{
	{
		Answer: stack.First, Kinds: []string{"panics"}, Fields: []string{"X-Half", "Vary", "Access-Control-Allow-Origin", "X-Request-Id"},
		Reason: "the fields of a response that was never sent are not those of the recovery's 500",
	},
	{
		Layers: []string{"cors", "recommended"}, Position: stack.Inside, Answer: stack.Replay,
		Fields: []string{"Access-Control-Allow-Origin"},
		Reason: "CORS fields answer one origin and are never kept (R14): CORS belongs outside",
	},
	{
		Layers: []string{"requestid", "recommended"}, Position: stack.Inside, Answer: stack.Replay,
		Fields: []string{"X-Request-Id"},
		Reason: "an ID names one request and is never kept (R14): it belongs outside",
	},
	{
		Layers: []string{"limiter", "recommended"}, Answer: stack.First,
		Fields: []string{"X-Ratelimit-Remaining", "X-Ratelimit-Reset"},
		Reason: "the limiter counts each request that reaches it",
	},
	{
		Layers: []string{"limiter", "recommended"}, Answer: stack.Replay,
		Fields: []string{"X-Ratelimit-Limit", "X-Ratelimit-Remaining", "X-Ratelimit-Reset"},
		Reason: "the limiter counts replays, too, where it stands outside, and runs that were released where it stands inside; its fields are never kept (R14)",
	},
	{
		Layers: []string{"compress", "compress.1", "recommended"}, Position: stack.Outside, Answer: stack.First,
		Kinds: []string{"refused", "failed"}, Fields: []string{"Vary", "Content-Encoding"},
		Reason: "a returned error becomes its response inside, so the layer marks it as it does any other",
	},
	{
		Layers: []string{"compress", "compress.1", "recommended"}, Position: stack.Outside, Answer: stack.Replay,
		Kinds: []string{"stream"}, Fields: []string{"Content-Encoding", "Vary"}, Optional: true,
		Reason: "newer releases of fasthttp compress a stream whatever its length; the replay is shorter than its minimum, and whole",
	},
	{
		Layers: []string{"helmet", "recommended"}, Position: stack.Inside, Answer: stack.First, Kinds: []string{"panics"},
		Reason: "the fields of a response that was never sent are not those of the recovery's 500",
	},
	{
		Layers: []string{"session"}, Answer: stack.First, Fields: []string{"Set-Cookie"},
		Reason: "the layer gives a session to each request without a cookie",
	},
	{
		Layers: []string{"session"}, Answer: stack.Replay, Fields: []string{"Set-Cookie"},
		Reason: "outside as above; inside, a cookie is never kept (R14)",
	},
	{
		Layers: []string{"compress", "compress.1", "recommended"}, Position: stack.Outside, Answer: stack.Replay,
		Kinds: []string{"file"}, Fields: []string{"Content-Encoding", "Vary"},
		Reason: "SendFile removes Accept-Encoding from its request, so that the layer compresses the replay and not the first answer",
	},
}
