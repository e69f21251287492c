package reprisefiber_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
)

type outerKey struct{}

func TestHandlersGetTheContextOfTheAttempt(t *testing.T) {
	t.Parallel()
	s := serve(t, options{}, handle(func(c *fiber.Ctx) error {
		view, ok := reprise.AttemptFrom(c.UserContext())
		if !ok || view.Number() != 1 || c.UserContext().Value(outerKey{}) != "outer" {
			t.Error("the context is not that of the attempt, with the values of the request")
		}
		return nil
	}, func(c *fiber.Ctx) error {
		c.SetUserContext(context.WithValue(c.UserContext(), outerKey{}, "outer"))
		err := c.Next()
		if _, ok := reprise.AttemptFrom(c.UserContext()); ok || c.UserContext().Value(outerKey{}) != "outer" {
			t.Error("layers outside do not get their context back")
		}
		if _, ok := reprise.AttemptFrom(c.Context()); ok {
			t.Error("layers outside find the attempt in the context of fasthttp")
		}
		return err
	}))
	s.do(t, request("", key("k")))
}

// Handlers may pass the context of fasthttp, or one made of it, where they should pass
// that of the run.
func TestR36DecisionsWorkWithEveryContext(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]func(*fiber.Ctx) context.Context{
		"of the run":         func(c *fiber.Ctx) context.Context { return c.UserContext() },
		"of fasthttp":        func(c *fiber.Ctx) context.Context { return c.Context() },
		"made of fasthttp's": func(c *fiber.Ctx) context.Context { return context.WithValue(c.Context(), outerKey{}, 1) },
		"set by the handler": func(c *fiber.Ctx) context.Context {
			c.SetUserContext(context.WithValue(c.Context(), outerKey{}, 1))
			return c.UserContext()
		},
	} {
		s := serve(t, options{}, handle(func(c *fiber.Ctx) error {
			ctx := of(c)
			if view, ok := reprise.AttemptFrom(ctx); !ok || view.Number() != 1 {
				t.Errorf("%s: there is no attempt", name)
			}
			if ok := protocol.Release(ctx); !ok {
				t.Errorf("%s: the handler has no say", name)
			}
			return nil
		}))
		s.do(t, request("", key("k")))
		s.do(t, request("", key("k")))
		s.wantRuns(t, 2)
	}
}

// A handler that gives its request a context without the run's is a handler like any
// other.
func TestHandlersMaySetAnotherContext(t *testing.T) {
	t.Parallel()
	s := serve(t, options{}, handle(func(c *fiber.Ctx) error {
		c.SetUserContext(t.Context())
		return c.SendString("body")
	}))
	s.wantReplay(t, request("", key("k")))
	s.wantRuns(t, 1)
}

// A middleware that stands twice in one chain, for different principals, has two runs and
// finds each.
func TestMiddlewaresNest(t *testing.T) {
	t.Parallel()
	principal := func(c *fiber.Ctx) (string, error) { return fmt.Sprint("principal ", c.Locals("principal")), nil }
	s := serve(t, options{scope: principal}, func(s *service) {
		s.app.Use(s.protect)
		s.app.Post("/x", func(c *fiber.Ctx) error {
			c.Locals("principal", "inner")
			before, _ := reprise.AttemptFrom(c.Context())
			err := c.Next()
			if after, ok := reprise.AttemptFrom(c.Context()); !ok || after != before {
				t.Error("the outer run is lost after the inner one")
			}
			return err
		}, s.protect, s.counted(echo))
	})
	s.wantReplay(t, request("body", key("k")))
	s.wantRuns(t, 1)
}

// flakyStore refuses the first completions of every attempt.
type flakyStore struct {
	store.Store

	left atomic.Int64
}

func (s *flakyStore) Complete(ctx context.Context, r store.CompleteRequest) error {
	if s.left.Add(-1) >= 0 {
		return store.ErrUnavailable
	}
	return s.Store.Complete(ctx, r)
}

// fasthttp gives its request contexts to other requests. The engine's work after the
// response does not see their values.
func TestReusedContextIsNotRead(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	values := make(map[string]map[any]bool) // by the digest of the scope
	completed := make(chan struct{}, 100)
	observer := reprise.ObserverFunc(func(ctx context.Context, e reprise.Event) {
		if e.Kind == reprise.EventDeclared {
			return // of no request
		}
		mu.Lock()
		defer mu.Unlock()
		if values[e.Scope] == nil {
			values[e.Scope] = make(map[any]bool)
		}
		values[e.Scope][ctx.Value("tenant")] = true
		if e.Name() == "completed" {
			completed <- struct{}{}
		}
	})
	store := &flakyStore{Store: memstore.New()}
	store.left.Store(40)
	s := serve(t, options{
		store:  store,
		engine: reprise.Config{Observer: observer, CompleteTimeout: 20 * time.Millisecond},
		scope:  func(c *fiber.Ctx) (string, error) { return c.Get("X-Tenant"), nil },
	}, handle(echo, func(c *fiber.Ctx) error {
		c.Locals("tenant", string([]byte(c.Get("X-Tenant"))))
		c.SetUserContext(c.Context())
		return c.Next()
	}))
	conn := s.dial(t)
	for i := range 20 { // on one connection, so that one request context serves them all
		conn.send(t, request("", key("k"), "X-Tenant: "+string(rune('a'+i))))
		conn.receive(t)
	}
	for range 20 {
		select {
		case <-completed:
		case <-time.After(patience):
			t.Fatal("not every answer is completed")
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if len(values) != 20 {
		t.Errorf("there were events of %d scopes", len(values))
	}
	for scope, seen := range values { // the background has no value, and all others that of their request
		delete(seen, nil)
		if len(seen) > 1 {
			t.Errorf("events of %s have the values of %v", scope, seen)
		}
	}
}
