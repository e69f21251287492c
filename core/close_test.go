package reprise_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/store"
)

func TestCloseStopsTheWorkInTheBackground(t *testing.T) {
	inTime(t, func(t *testing.T) {
		b := setup(t, reprise.Config{})
		var calls atomic.Int64
		b.store.OnComplete = func(ctx context.Context, _ store.CompleteRequest) error {
			calls.Add(1)
			<-ctx.Done()
			return store.ErrUnknown
		}
		complete(t, b.claim(t, order("k")), "answer", reprise.EndUnrecorded)
		wantError(t, "Close", closeWithin(t, b.Engine, time.Minute), context.DeadlineExceeded)
		synctest.Wait()
		n := calls.Load()
		time.Sleep(time.Hour)
		if calls.Load() != n {
			t.Error("went on after Close")
		}
	})
}

// A claim that is granted after the engine stopped must not run: its lease is not
// renewed.
func TestClaimGrantedAfterCloseGaveUp(t *testing.T) {
	for name, used := range map[string]bool{"first": false, "later": true} {
		inTimeNamed(t, name, func(t *testing.T) {
			b := setup(t, reprise.Config{})
			if used {
				release(t, b.claim(t, order("before")))
			}
			let := make(chan struct{})
			b.store.OnClaim = func(ctx context.Context, r store.ClaimRequest) (store.ClaimResult, error) {
				<-let
				return b.store.Store.Claim(context.WithoutCancel(ctx), r)
			}
			var s answers
			s.begin(t.Context(), b.Engine, order("k"), 1)
			wantError(t, "Close", closeWithin(t, b.Engine, time.Second), context.DeadlineExceeded)
			close(let)
			wantError(t, "Begin", s.want(t, reprise.Unavailable, 1)[0].err, store.ErrClosed)
			release(t, setupOver(t, b.store.Store, reprise.Config{}).claim(t, order("k")))
		})
	}
}

// maintained is a store with recurring work.
type maintained struct {
	store.Store
	maintain func(context.Context)
}

func (m *maintained) Maintain(ctx context.Context) { m.maintain(ctx) }

// TestEngineMaintainsItsStore: from its first operation, once for all of them, until
// Close, which waits for the end. A store without such work gets no goroutine, which the
// bubbles of the other tests show.
func TestEngineMaintainsItsStore(t *testing.T) {
	inTime(t, func(t *testing.T) {
		var began, ended int
		st := &maintained{memstore.New(), func(ctx context.Context) {
			began++
			<-ctx.Done()
			time.Sleep(time.Second)
			ended++
		}}
		e := newEngine(t, &decorator{st}, nil, reprise.Config{})
		synctest.Wait()
		if began != 0 {
			t.Errorf("%d goroutines before the first operation", began)
		}
		for _, key := range []string{"a", "b"} {
			res := must(e.Begin(t.Context(), order(key)))
			release(t, res.Attempt)
		}
		time.Sleep(24 * time.Hour)
		synctest.Wait()
		if began != 1 || ended != 0 {
			t.Errorf("after two operations and a day %d goroutines began and %d ended, want one that runs", began, ended)
		}
		start := time.Now()
		if err := closeWithin(t, e, time.Hour); err != nil || ended != 1 || time.Since(start) != time.Second {
			t.Errorf("Close returned %v after %v, want the end of the goroutine after a second", err, time.Since(start))
		}
	})
}

// decorator wraps a store and intercepts no call.
type decorator struct{ store.Store }

// Unwrap returns the wrapped store.
func (d *decorator) Unwrap() store.Store { return d.Store }

// TestCloseLeavesMaintenanceThatHangs: a store that does not obey its context delays
// Close until the context of Close ends.
func TestCloseLeavesMaintenanceThatHangs(t *testing.T) {
	inTime(t, func(t *testing.T) {
		hang := make(chan struct{})
		defer close(hang)
		e := newEngine(t, &maintained{memstore.New(), func(context.Context) { <-hang }}, nil, reprise.Config{})
		res := must(e.Begin(t.Context(), order("k")))
		release(t, res.Attempt)
		start := time.Now()
		if err := closeWithin(t, e, time.Minute); err != nil || time.Since(start) != time.Minute {
			t.Errorf("Close returned %v after %v, want none after a minute", err, time.Since(start))
		}
	})
}
