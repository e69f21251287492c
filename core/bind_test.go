package reprise_test

import (
	"context"
	"testing"
	"testing/synctest"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/store"
)

// binding is a store that binds, or panics instead.
type binding struct {
	store.Store
	bind   func(ctx context.Context, id store.ID, owner store.Owner) context.Context
	leased bool
}

func (b *binding) Bind(ctx context.Context, id store.ID, owner store.Owner) context.Context {
	return b.bind(ctx, id, owner)
}

func (b *binding) Atomic() bool { return !b.leased }

func TestBindIsCalledOnceAndItsContextReachesTheHandler(t *testing.T) {
	inTime(t, func(t *testing.T) {
		type key struct{}
		binds := 0
		st := &binding{Store: memstore.New()}
		st.bind = func(ctx context.Context, id store.ID, owner store.Owner) context.Context {
			binds++
			if id != idOf(order("k")) || owner.IsZero() {
				t.Errorf("bound %v of owner %v", id, owner)
			}
			return context.WithValue(ctx, key{}, "transaction")
		}
		e := newEngine(t, st, nil, reprise.Config{})
		res := must(e.Begin(context.WithValue(t.Context(), "trace", "t1"), order("k"))) //nolint:revive,staticcheck // any key will do
		ctx := res.Attempt.Context()
		if ctx.Value(key{}) != "transaction" || ctx.Value("trace") != "t1" {
			t.Error("the handler's context misses a value")
		}
		if v, ok := reprise.AttemptFrom(ctx); !ok || v != res.Attempt.View() {
			t.Error("the handler's context misses its attempt")
		}
		complete(t, res.Attempt, "answer", reprise.EndRecorded)
		wantCause(t, ctx, context.Canceled)
		if _, err := e.Begin(t.Context(), order("k")); err != nil || binds != 1 {
			t.Errorf("bound %d times (%v), want once", binds, err)
		}
	})
}

func TestFailedBindFreesTheKeyWithoutARun(t *testing.T) {
	for name, bind := range map[string]func(context.Context, store.ID, store.Owner) context.Context{
		"panic": func(context.Context, store.ID, store.Owner) context.Context { panic("a bug in the store") },
		"nil":   func(context.Context, store.ID, store.Owner) context.Context { return nil },
	} {
		inTimeNamed(t, name, func(t *testing.T) {
			st := &binding{Store: memstore.New(), bind: bind}
			e := newEngine(t, st, nil, reprise.Config{})
			_, err := e.Begin(t.Context(), order("k"))
			wantError(t, "Begin", err, store.ErrUnknown)
			synctest.Wait()
			release(t, setupOver(t, st.Store, reprise.Config{}).claim(t, order("k")))
		})
	}
}

// The operation would run without the transaction in which its effects belong.
func TestFailOpenIsRefusedOverAStoreThatBinds(t *testing.T) {
	t.Parallel()
	e := newEngine(t, &binding{Store: memstore.New(), bind: func(ctx context.Context, _ store.ID, _ store.Owner) context.Context { return ctx }}, &events{}, reprise.Config{})
	res, err := e.Begin(t.Context(), open(order("k")))
	wantNoRun(t, res, err, reprise.Failed)
	wantError(t, "Begin", err, store.ErrInvalid)
}

// decorator wraps a store and intercepts no call.
type decorator struct{ store.Store }

// Unwrap returns the wrapped store.
func (d *decorator) Unwrap() store.Store { return d.Store }
