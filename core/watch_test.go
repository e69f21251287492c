package reprise_test

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/store"
)

// watched is a store with the ability to wait, and a script for it.
type watched struct {
	store.Store
	watch func(ctx context.Context, id store.ID) (<-chan struct{}, func(), error)
}

func (w *watched) Watch(ctx context.Context, id store.ID) (<-chan struct{}, func(), error) {
	return w.watch(ctx, id)
}

func TestPushShortensTheWait(t *testing.T) {
	inTime(t, func(t *testing.T) {
		st := memstore.New()
		b := setupOver(t, st, reprise.Config{})
		e := newEngine(t, st, nil, reprise.Config{}) // which has the store's ability
		a := b.claim(t, order("k"))
		var s answers
		s.begin(t.Context(), e, wait(order("k"), time.Minute), 10)
		time.Sleep(10*time.Second + 1)
		complete(t, a, "answer", reprise.EndRecorded)
		s.want(t, reprise.Replayed, 10) // in the same instant
	})
}

func TestWatchIsAHint(t *testing.T) {
	for name, watch := range map[string]func(ctx context.Context, id store.ID) (<-chan struct{}, func(), error){
		"that is closed": func(context.Context, store.ID) (<-chan struct{}, func(), error) {
			ch := make(chan struct{})
			close(ch)
			return ch, func() {}, nil
		},
		"that fails": func(context.Context, store.ID) (<-chan struct{}, func(), error) {
			return nil, nil, store.ErrUnavailable
		},
		"that panics":    func(context.Context, store.ID) (<-chan struct{}, func(), error) { panic("a bug in the store") },
		"that is silent": func(context.Context, store.ID) (<-chan struct{}, func(), error) { return nil, func() {}, nil },
	} {
		inTimeNamed(t, name, func(t *testing.T) {
			b := setup(t, reprise.Config{})
			e := newEngine(t, &watched{Store: b.store, watch: watch}, nil, reprise.Config{})
			a := b.claim(t, order("k"))
			var s answers
			s.begin(t.Context(), e, wait(order("k"), time.Minute), 3)
			time.Sleep(5 * time.Second)
			s.none(t)
			complete(t, a, "answer", reprise.EndRecorded)
			time.Sleep(time.Second)
			s.want(t, reprise.Replayed, 3)
		})
	}
}

func TestWatchThatHangsIsBoundedByTheWait(t *testing.T) {
	inTime(t, func(t *testing.T) {
		b := setup(t, reprise.Config{})
		e := newEngine(t, &watched{Store: b.store, watch: func(ctx context.Context, _ store.ID) (<-chan struct{}, func(), error) {
			<-ctx.Done()
			return nil, nil, ctx.Err()
		}}, nil, reprise.Config{})
		a := b.claim(t, order("k"))
		var s answers
		s.begin(t.Context(), e, wait(order("k"), time.Second), 1)
		time.Sleep(time.Second)
		s.want(t, reprise.InProgress, 1)
		release(t, a)
	})
}

func TestWatchIsStopped(t *testing.T) {
	inTime(t, func(t *testing.T) {
		b := setup(t, reprise.Config{})
		var open, watches atomic.Int64
		e := newEngine(t, &watched{Store: b.store, watch: func(context.Context, store.ID) (<-chan struct{}, func(), error) {
			open.Add(1)
			watches.Add(1)
			return make(chan struct{}), func() { open.Add(-1) }, nil
		}}, nil, reprise.Config{})
		a := b.claim(t, order("k"))
		var s answers
		s.begin(t.Context(), e, wait(order("k"), time.Second), 3)
		if open.Load() != 1 {
			t.Errorf("%d watches, want the head's", open.Load())
		}
		time.Sleep(2 * time.Second)
		s.want(t, reprise.InProgress, 3)
		if open.Load() != 0 || watches.Load() == 0 {
			t.Errorf("%d of %d watches are left open", open.Load(), watches.Load())
		}
		release(t, a)
	})
}

// asked is a store that notes which of its claims were those of waiters.
type asked struct {
	store.Store
	mu     sync.Mutex
	claims []bool
}

func (a *asked) Claim(ctx context.Context, r store.ClaimRequest) (store.ClaimResult, error) {
	a.mu.Lock()
	a.claims = append(a.claims, r.Waiting)
	a.mu.Unlock()
	return a.Store.Claim(ctx, r)
}

func (a *asked) Unwrap() store.Store { return a.Store }

// A store signals the end of an attempt only to waiters, so the claims of waiters are
// marked, and others are not.
func TestOnlyWaitersAskForASignal(t *testing.T) {
	inTime(t, func(t *testing.T) {
		st := memstore.New()
		b := setupOver(t, st, reprise.Config{})
		other := &asked{Store: st}
		e := newEngine(t, other, nil, reprise.Config{})
		a := b.claim(t, order("k"))
		if got, err := e.Begin(t.Context(), order("k")); err != nil || got.Outcome != reprise.InProgress {
			t.Errorf("begin: %v, %v", got.Outcome, err)
		}
		var s answers
		s.begin(t.Context(), e, wait(order("k"), time.Minute), 1)
		time.Sleep(time.Second)
		complete(t, a, "answer", reprise.EndRecorded)
		s.want(t, reprise.Replayed, 1)
		other.mu.Lock()
		defer other.mu.Unlock()
		if len(other.claims) < 4 || other.claims[0] || other.claims[1] || slices.Contains(other.claims[2:], false) {
			t.Errorf("waiting claims: %v; want none of the first two, and all that follow", other.claims)
		}
	})
}
