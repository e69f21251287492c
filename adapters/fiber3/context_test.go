package reprisefiber3_test

import (
	"bufio"
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/gofiber/fiber/v3"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/protocol"
)

type outerKey struct{}

// contexts are those that a handler may pass on.
var contexts = map[string]func(fiber.Ctx) context.Context{
	"of the run":      func(c fiber.Ctx) context.Context { return c.Context() },
	"of Fiber":        func(c fiber.Ctx) context.Context { return c },
	"of fasthttp":     func(c fiber.Ctx) context.Context { return c.RequestCtx() },
	"made of Fiber's": func(c fiber.Ctx) context.Context { return context.WithValue(c, outerKey{}, 1) },
	"set by the handler": func(c fiber.Ctx) context.Context {
		c.SetContext(context.WithValue(c, outerKey{}, 1))
		return c.Context()
	},
}

func TestR36DecisionsWorkWithEveryContextOfARunAlone(t *testing.T) {
	t.Parallel()
	for name, of := range contexts {
		outside := func(c fiber.Ctx) error {
			c.SetContext(context.WithValue(c.Context(), outerKey{}, "outer"))
			err := c.Next()
			if _, ok := reprise.AttemptFrom(of(c)); ok && name != "set by the handler" {
				t.Errorf("layers outside find the attempt in the context %s", name)
			}
			return err
		}
		s := serveOne(t, reprise.Recoverable, []any{outside}, nil, func(c fiber.Ctx) error {
			if c.Context().Value(outerKey{}) != "outer" {
				t.Error("the context has not the values of the request")
			}
			ctx := of(c)
			if view, ok := reprise.AttemptFrom(ctx); !ok || view.Number() != 1 {
				t.Errorf("%s: there is no attempt", name)
			}
			if !protocol.Release(ctx) {
				t.Errorf("%s: the handler has no say", name)
			}
			return nil
		})
		s.post("k")
		s.post("k")
		s.ran(2)
	}
}

// customCtx is a context of the app's.
type customCtx struct{ fiber.DefaultCtx }

func (*customCtx) Custom() string { return "custom" }

func TestCustomContextsReachTheHandler(t *testing.T) {
	t.Parallel()
	app := fiber.NewWithCustomCtx(func(app *fiber.App) fiber.CustomCtx { return &customCtx{*fiber.NewDefaultCtx(app)} })
	s := serve(t, app, reprise.Config{}, protocol.Config{}, func(s *service, protect fiber.Handler) {
		app.Post("/x", protect, func(c fiber.Ctx) error {
			s.runs.Add(1)
			return c.SendString(c.(interface{ Custom() string }).Custom())
		})
	})
	if first, again := s.post("k"), s.post("k"); first.body != "custom" || again.body != "custom" || !again.replayed {
		t.Errorf("got %+v and then %+v", first, again)
	}
	s.ran(1)
}

// Fiber and fasthttp give their contexts to other requests. An engine that records a
// stream does so after Fiber took back its own.
func TestReusedContextsAreNotRead(t *testing.T) {
	t.Parallel()
	for name, of := range contexts {
		var mu sync.Mutex
		values := map[string][]any{}
		observer := reprise.ObserverFunc(func(ctx context.Context, e reprise.Event) {
			mu.Lock()
			defer mu.Unlock()
			values[e.Name()] = append(values[e.Name()], ctx.Value("tenant"))
		})
		app := fiber.New()
		s := serve(t, app, reprise.Config{Observer: observer}, protocol.Config{}, func(s *service, protect fiber.Handler) {
			app.Post("/x", func(c fiber.Ctx) error {
				c.Locals("tenant", strings.Clone(c.Get("X-Tenant")))
				c.SetContext(of(c))
				return c.Next()
			}, protect, func(c fiber.Ctx) error {
				s.runs.Add(1)
				return c.SendStreamWriter(func(w *bufio.Writer) { _, _ = w.WriteString("streamed") })
			})
		})
		for _, tenant := range []string{"a", "b"} {
			if first := s.post(tenant, "X-Tenant", tenant); first.err != nil || first.body != "streamed" {
				t.Errorf("%s: got %+v", name, first)
			}
			if again := s.post(tenant, "X-Tenant", tenant); !again.replayed || again.body != "streamed" {
				t.Errorf("%s: the retry got %+v", name, again)
			}
		}
		s.ran(2)
		mu.Lock()
		for _, event := range []string{"claimed", "completed", "replayed"} {
			seen := values[event]
			if len(seen) != 2 || seen[0] != nil && seen[0] != "a" || seen[1] != nil && seen[1] != "b" {
				t.Errorf("%s: the values of %s are %v", name, event, seen)
			}
		}
		mu.Unlock()
	}
}
