package reprise_test

import (
	"context"
	"slices"
	"testing"
	"time"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/store"
)

type traceKey struct{}

// client is a request with a value, and a function that cancels it.
func client(t *testing.T) (ctx context.Context, leave context.CancelFunc) {
	t.Helper()
	return context.WithTimeout(context.WithValue(t.Context(), traceKey{}, "trace"), time.Second)
}

// begun is a running attempt of a client.
func begun(t *testing.T, ctx context.Context, b *bench) *reprise.Attempt {
	t.Helper()
	return b.wantIn(t, ctx, order("k"), reprise.Claimed).Attempt
}

func TestHandlersContextHasTheValuesOfTheRequestAndNotItsEnd(t *testing.T) {
	inTime(t, func(t *testing.T) {
		b := setup(t, reprise.Config{})
		ctx, leave := client(t)
		a := begun(t, ctx, b)
		leave()
		for range 2 { // before it is cancellable, and after
			run := a.Context()
			if _, ok := run.Deadline(); ok || run.Err() != nil || context.Cause(run) != nil {
				t.Fatalf("the client's end shows: %v, cause %v", run.Err(), context.Cause(run))
			}
			if run.Value(traceKey{}) != "trace" || run.Value("another") != nil {
				t.Error("values are not those of the request")
			}
			if v, ok := reprise.AttemptFrom(run); !ok || v != a.View() {
				t.Error("the attempt is not in its context")
			}
			select {
			case <-run.Done():
				t.Fatal("done with its client")
			default:
			}
		}
		complete(t, a, "answer", reprise.EndRecorded)
	})
}

// spy records the key with which package context looks up a cancellable parent.
type spy struct {
	context.Context
	key any
}

// Value implements [context.Context].
func (s *spy) Value(key any) any {
	s.key = key
	return s.Context.Value(key)
}

// Package context, as of Go 1.25, trusts this value without asking whether the context
// has ended.
func TestHandlersContextDoesNotPassForItsClients(t *testing.T) {
	inTime(t, func(t *testing.T) {
		b := setup(t, reprise.Config{})
		ctx, leave := client(t)
		s := &spy{Context: ctx}
		_, stop := context.WithCancel(s)
		stop()
		a := begun(t, ctx, b)
		leave()
		if s.key == nil || a.Context().Value(s.key) == ctx.Value(s.key) {
			t.Errorf("is taken for its client's by the key %v", s.key)
		}
		release(t, a)
	})
}

// The store gets the values of the request, and a bound that is not the client's.
func TestStoreCallsHaveTheValuesOfTheRequestAndABoundOfTheirOwn(t *testing.T) {
	inTime(t, func(t *testing.T) {
		inner := memstore.New()
		b := setupOver(t, inner, reprise.Config{})
		check := func(ctx context.Context, what string) {
			t.Helper()
			at, ok := ctx.Deadline()
			if left := time.Until(at); !ok || left < budget*95/100 || left > budget {
				t.Errorf("%s may take %v (%v), want 1.9s to 2s", what, left, ok)
			}
			if ctx.Err() != nil || context.Cause(ctx) != nil {
				t.Errorf("%s: %v, cause %v", what, ctx.Err(), context.Cause(ctx))
			}
			if ctx.Value(traceKey{}) != "trace" {
				t.Errorf("%s has no trace", what)
			}
			child, stop := context.WithTimeout(ctx, time.Minute) // as drivers do
			defer stop()
			if at2, ok := child.Deadline(); !ok || !at2.Equal(at) {
				t.Errorf("%s: a child may take until %v", what, at2)
			}
		}
		b.store.OnClaim = func(ctx context.Context, r store.ClaimRequest) (store.ClaimResult, error) {
			check(ctx, "a claim")
			return inner.Claim(ctx, r)
		}
		b.store.OnComplete = func(ctx context.Context, r store.CompleteRequest) error {
			check(ctx, "a completion")
			return inner.Complete(ctx, r)
		}
		b.store.OnRelease = func(ctx context.Context, id store.ID, o store.Owner) error {
			check(ctx, "a release")
			return inner.Release(ctx, id, o)
		}
		for range 50 { // operations share deadlines
			ctx, leave := client(t)
			leave()
			release(t, begun(t, ctx, b))
			time.Sleep(budget / 90)
		}
		ctx, leave := client(t)
		a := begun(t, ctx, b)
		leave()
		complete(t, a, "answer", reprise.EndRecorded)
	})
}

// A handler may pass the context of its framework, where an adapter put that of the run.
func TestAttemptFromTheContextOfAFramework(t *testing.T) {
	inTime(t, func(t *testing.T) {
		b := setup(t, reprise.Config{})
		a := b.claim(t, order("k"))
		own := context.WithValue(t.Context(), store.ContextKey, a.Context()) //nolint:staticcheck // as frameworks find values by strings
		for name, ctx := range map[string]context.Context{"the framework's": own, "the run's": a.Context()} {
			if view, ok := reprise.AttemptFrom(ctx); !ok || view.ID() != idOf(order("k")) {
				t.Errorf("%s: %v, %t", name, view, ok)
			}
		}
		release(t, a)
	})
}

// valueReader is a decorator that embeds a store which ignores the values of contexts,
// and reads them itself: the ability of the embedded store is not the decorator's.
type valueReader struct {
	*memstore.Store

	seen []any
}

type readerKey struct{}

func (r *valueReader) Claim(ctx context.Context, c store.ClaimRequest) (store.ClaimResult, error) {
	r.seen = append(r.seen, ctx.Value(readerKey{}))
	return r.Store.Claim(ctx, c)
}

func TestDecoratorGetsTheValuesThatItsStoreIgnores(t *testing.T) {
	t.Parallel()
	store := &valueReader{Store: memstore.New()}
	e := must(reprise.New(store, reprise.Config{}))
	defer e.Close(t.Context())
	res := must(e.Begin(context.WithValue(t.Context(), readerKey{}, "tenant"), order("k")))
	release(t, res.Attempt)
	if !slices.Equal(store.seen, []any{"tenant"}) {
		t.Errorf("the store saw %v", store.seen)
	}
}
