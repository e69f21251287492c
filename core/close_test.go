package reprise_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/store"
)

func TestCloseWaitsForRunningAttempts(t *testing.T) {
	inTime(t, func(t *testing.T) {
		b := setup(t, reprise.Config{})
		a := b.claim(t, order("k"))
		time.AfterFunc(10*lease, func() { _, _ = a.Complete(reprise.Completion{Payload: []byte("answer")}) })
		start := time.Now()
		wantError(t, "Close", closeWithin(t, b.Engine, time.Hour), nil)
		if took := time.Since(start); took != 10*lease {
			t.Errorf("closed after %v, want 5m: when the last attempt ended, its lease kept", took)
		}
		_, err := b.Begin(t.Context(), order("another"))
		wantError(t, "Begin", err, store.ErrClosed)
		setupOver(t, b.store.Store, reprise.Config{}).want(t, order("k"), reprise.Replayed)
	})
}

func TestCloseTakesNoNewOperations(t *testing.T) {
	inTime(t, func(t *testing.T) {
		b := setup(t, reprise.Config{})
		a := b.claim(t, order("k"))
		b.store.onClaim = func(context.Context, store.ClaimRequest) (store.ClaimResult, error) {
			t.Error("asked the store")
			return store.ClaimResult{}, store.ErrUnknown
		}
		var closing sync.WaitGroup
		closing.Go(func() { _ = closeWithin(t, b.Engine, time.Hour) })
		synctest.Wait()
		for _, op := range []reprise.Operation{order("k"), order("another"), wait(order("k"), time.Minute)} {
			_, err := b.Begin(t.Context(), op)
			wantError(t, "Begin", err, store.ErrClosed)
		}
		release(t, a)
		closing.Wait()
	})
}

func TestCloseWaitsForTheWorkInTheBackground(t *testing.T) {
	for name, begin := range map[string]func(*testing.T, *bench){
		"a completion": func(t *testing.T, b *bench) {
			complete(t, b.claim(t, order("k")), "answer", reprise.EndUnrecorded)
		},
		"a release": func(t *testing.T, b *bench) {
			wantError(t, "Release", b.claim(t, order("k")).Release(), store.ErrUnavailable)
		},
		"a claim that was given up": func(t *testing.T, b *bench) {
			b.store.onClaim = func(context.Context, store.ClaimRequest) (store.ClaimResult, error) {
				return store.ClaimResult{}, store.ErrUnknown
			}
			_, err := b.Begin(t.Context(), order("k"))
			wantError(t, "Begin", err, store.ErrUnknown)
		},
	} {
		inTimeNamed(t, name, func(t *testing.T) {
			b := setup(t, reprise.Config{})
			b.store.onComplete = func(context.Context, store.CompleteRequest) error { return store.ErrUnavailable }
			b.store.onRelease = func(context.Context, store.ID, store.Owner) error { return store.ErrUnavailable }
			begin(t, b)
			time.AfterFunc(time.Minute, b.store.heal)
			start := time.Now()
			wantError(t, "Close", closeWithin(t, b.Engine, time.Hour), nil)
			if took := time.Since(start); took < time.Minute || took > time.Minute+2*time.Second {
				t.Errorf("closed after %v, want when the store was back", took)
			}
		})
	}
}

// Attempts that are left lapse: they are cancelled, and not released.
func TestCloseCancelsRemainingAttemptsAtItsDeadline(t *testing.T) {
	inTime(t, func(t *testing.T) {
		b := setup(t, reprise.Config{})
		var releases atomic.Int64
		b.store.onRelease = func(ctx context.Context, id store.ID, o store.Owner) error {
			releases.Add(1)
			return b.store.Store.Release(ctx, id, o)
		}
		a, other := b.claim(t, order("k")), b.claim(t, order("other"))
		err := closeWithin(t, b.Engine, 10*time.Second)
		wantError(t, "Close", err, context.DeadlineExceeded)
		if got, want := err.Error(), "reprise: closed with unfinished operations (2): context deadline exceeded"; got != want {
			t.Errorf("%q, want %q", got, want)
		}
		for _, a := range []*reprise.Attempt{a, other} {
			if !errors.Is(context.Cause(a.Context()), store.ErrLeaseLost) { // already, when Close returned
				t.Errorf("cause %v", context.Cause(a.Context()))
			}
		}
		second := setupOver(t, b.store.Store, reprise.Config{})
		second.want(t, order("k"), reprise.InProgress)
		time.Sleep(lease)
		if n := second.claim(t, order("k")); n.View().Number() != 2 {
			t.Errorf("attempt %d, want 2: the record lapses", n.View().Number())
		} else {
			release(t, n)
		}
		if n := releases.Load(); n != 0 {
			t.Errorf("released %d times", n)
		}
		b.events.wantCount(t, "lease-lost", 2)

		complete(t, a, "answer", reprise.EndRecorded) // where the store takes it
		if err := closeWithin(t, b.Engine, time.Second); err == nil {
			t.Error("Close again does not wait for the other")
		}
		b.store.onComplete = func(context.Context, store.CompleteRequest) error { return store.ErrUnavailable }
		complete(t, other, "answer", reprise.EndUnrecorded) // and where it does not, no work is left
		if err := closeWithin(t, b.Engine, time.Second); err != nil {
			t.Errorf("Close again: %v", err)
		}
	})
}

// A batch that hangs and does not heed its context delays no cancellation.
func TestCloseCancelsHandlersThoughARenewalHangs(t *testing.T) {
	inTime(t, func(t *testing.T) {
		b := setup(t, reprise.Config{})
		let := make(chan struct{})
		b.store.onRenew = func(context.Context, []store.RenewRequest) ([]store.RenewStatus, error) {
			<-let
			return nil, store.ErrUnknown
		}
		a := b.claim(t, order("k"))
		time.Sleep(lease / 2)
		wantError(t, "Close", closeWithin(t, b.Engine, time.Second), context.DeadlineExceeded)
		wantCause(t, a.Context(), store.ErrLeaseLost)
		close(let)
		_ = a.Release()
	})
}

func TestCloseStopsTheWorkInTheBackground(t *testing.T) {
	inTime(t, func(t *testing.T) {
		b := setup(t, reprise.Config{})
		var calls atomic.Int64
		b.store.onComplete = func(ctx context.Context, _ store.CompleteRequest) error {
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

func TestCloseAtOnceFromManyGoroutines(t *testing.T) {
	inTime(t, func(t *testing.T) {
		b := setup(t, reprise.Config{})
		a := b.claim(t, order("k"))
		var all sync.WaitGroup
		var left atomic.Int64
		for i := range 10 {
			all.Go(func() {
				if err := closeWithin(t, b.Engine, time.Duration(i+1)*time.Second); err != nil {
					left.Add(1)
				}
			})
		}
		time.Sleep(5*time.Second + 1)
		release(t, a)
		all.Wait()
		if left.Load() != 5 {
			t.Errorf("%d gave up, want 5", left.Load())
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
			b.store.onClaim = func(ctx context.Context, r store.ClaimRequest) (store.ClaimResult, error) {
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
