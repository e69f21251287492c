package reprise_test

import (
	"context"
	"fmt"
	"testing"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
)

// counting is a decorator that intercepts purges and checks.
type counting struct {
	reprise.Store
	purges int
}

func (c *counting) Unwrap() reprise.Store { return c.Store }

func (c *counting) Purge(ctx context.Context, limit int) (int, error) {
	c.purges++
	inner, ok := reprise.As[reprise.Purger](c.Store)
	if !ok {
		panic("asked for an ability that the wrapped store lacks")
	}
	return inner.Purge(ctx, limit)
}

func (c *counting) Check(context.Context) ([]reprise.Finding, error) {
	panic("asked for an ability that the wrapped store lacks")
}

// plain forwards nothing but the operations of a store.
type plain struct{ reprise.Store }

func abilities(s reprise.Store) string {
	_, binder := reprise.As[reprise.ContextBinder](s)
	_, waiter := reprise.As[reprise.Waiter](s)
	_, purger := reprise.As[reprise.Purger](s)
	_, checker := reprise.As[reprise.Checker](s)
	_, inspector := reprise.As[reprise.Inspector](s)
	return fmt.Sprintf("binder %t, waiter %t, purger %t, checker %t, inspector %t", binder, waiter, purger, checker, inspector)
}

func TestDecoratorHasTheAbilitiesOfTheStoreItWraps(t *testing.T) {
	t.Parallel()
	const (
		none   = "binder false, waiter false, purger false, checker false, inspector false"
		memory = "binder false, waiter true, purger true, checker false, inspector true"
	)
	wrap := func(s reprise.Store) reprise.Store { return &counting{Store: s} }
	for name, c := range map[string]struct {
		store reprise.Store
		want  string
	}{
		"bare":                            {memstore.New(), memory},
		"wrapped":                         {wrap(memstore.New()), memory},
		"wrapped twice":                   {wrap(wrap(memstore.New())), memory},
		"without Unwrap":                  {plain{memstore.New()}, none},
		"around one without Unwrap":       {wrap(plain{memstore.New()}), none},
		"around one that is without both": {wrap(plain{wrap(memstore.New())}), none},
		"nothing":                         {nil, none},
		"around nothing":                  {wrap(nil), none},
	} {
		if got := abilities(c.store); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

func TestDecoratorInterceptsFromTheOutsideIn(t *testing.T) {
	t.Parallel()
	inner := &counting{Store: memstore.New()}
	outer := &counting{Store: inner}
	purger, ok := reprise.As[reprise.Purger](outer)
	if !ok {
		t.Fatal("not found")
	}
	if _, err := purger.Purge(t.Context(), 1); err != nil || outer.purges != 1 || inner.purges != 1 {
		t.Errorf("%d purges outside, %d inside, error %v", outer.purges, inner.purges, err)
	}
}

// What the engine uses itself it finds behind decorators too.
func TestEngineFindsAbilitiesBehindADecorator(t *testing.T) {
	inTime(t, func(t *testing.T) {
		type key struct{}
		bound := &binding{Store: memstore.New(), bind: func(ctx context.Context, _ reprise.ID, _ reprise.Owner) context.Context {
			return context.WithValue(ctx, key{}, "transaction")
		}}
		e := newEngine(t, &counting{Store: bound}, nil, reprise.Config{})
		res, err := e.Begin(t.Context(), order("k"))
		if err != nil || res.Attempt.Context().Value(key{}) != "transaction" {
			t.Fatalf("error %v, or the handler's context misses what the store bound", err)
		}
		release(t, res.Attempt)
	})
}
