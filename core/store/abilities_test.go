package store_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/store"
)

// counting is a decorator that intercepts purges and checks.
type counting struct {
	store.Store
	purges int
}

func (c *counting) Unwrap() store.Store { return c.Store }

func (c *counting) Purge(ctx context.Context, limit int) (int, error) {
	c.purges++
	inner, ok := store.As[store.Purger](c.Store)
	if !ok {
		panic("asked for an ability that the wrapped store lacks")
	}
	return inner.Purge(ctx, limit)
}

func (c *counting) Check(context.Context) ([]store.Finding, error) {
	panic("asked for an ability that the wrapped store lacks")
}

// plain forwards the operations of a store only.
type plain struct{ store.Store }

func abilities(s store.Store) string {
	_, waiter := store.As[store.Waiter](s)
	_, purger := store.As[store.Purger](s)
	_, checker := store.As[store.Checker](s)
	_, inspector := store.As[store.Inspector](s)
	return fmt.Sprintf("waiter %t, purger %t, checker %t, inspector %t", waiter, purger, checker, inspector)
}

func TestDecoratorHasTheAbilitiesOfTheStoreItWraps(t *testing.T) {
	t.Parallel()
	const (
		none   = "waiter false, purger false, checker false, inspector false"
		memory = "waiter true, purger true, checker false, inspector true"
	)
	wrap := func(s store.Store) store.Store { return &counting{Store: s} }
	for name, c := range map[string]struct {
		store store.Store
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
	purger, ok := store.As[store.Purger](outer)
	if !ok {
		t.Fatal("not found")
	}
	if _, err := purger.Purge(t.Context(), 1); err != nil || outer.purges != 1 || inner.purges != 1 {
		t.Errorf("%d purges outside, %d inside, error %v", outer.purges, inner.purges, err)
	}
}
