package reprisefiber3_test

import (
	"bufio"
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/gofiber/fiber/v3"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
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
		s.Post("k")
		s.Post("k")
		s.Ran(2)
	}
}

// customCtx is a context of the app's.
type customCtx struct{ fiber.DefaultCtx }

func (*customCtx) Custom() string { return "custom" }

func TestCustomContextsReachTheHandler(t *testing.T) {
	t.Parallel()
	app := fiber.NewWithCustomCtx(func(app *fiber.App) fiber.CustomCtx { return &customCtx{*fiber.NewDefaultCtx(app)} })
	s := serve(t, app, func(s *service, protect fiber.Handler) {
		app.Post("/x", protect, func(c fiber.Ctx) error {
			s.Runs.Add(1)
			return c.SendString(c.(interface{ Custom() string }).Custom())
		})
	})
	if first, again := s.Post("k"), s.Post("k"); first.Body != "custom" || again.Body != "custom" || !again.Replayed {
		t.Errorf("got %+v and then %+v", first, again)
	}
	s.Ran(1)
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
		s := serveOn(t, fibers, app, memstore.New(), protocol.Config{Engine: reprise.Config{Observer: observer}}, func(s *service, protect fiber.Handler) {
			app.Post("/x", func(c fiber.Ctx) error {
				c.Locals("tenant", strings.Clone(c.Get("X-Tenant")))
				c.SetContext(of(c))
				return c.Next()
			}, protect, func(c fiber.Ctx) error {
				s.Runs.Add(1)
				return c.SendStreamWriter(func(w *bufio.Writer) { _, _ = w.WriteString("streamed") })
			})
		})
		for _, tenant := range []string{"a", "b"} {
			if first := s.Post(tenant, "X-Tenant: "+tenant); first.Err != nil || first.Body != "streamed" {
				t.Errorf("%s: got %+v", name, first)
			}
			if again := s.Post(tenant, "X-Tenant: "+tenant); !again.Replayed || again.Body != "streamed" {
				t.Errorf("%s: the retry got %+v", name, again)
			}
		}
		s.Ran(2)
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
