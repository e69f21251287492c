package reprise_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/store"
)

// setupAtomic makes a process whose store says that it commits effects and completion
// together, within a bound.
func setupAtomic(t *testing.T, bound time.Duration) *bench {
	t.Helper()
	b := setup(t, reprise.Config{})
	b.store.onClaim = func(ctx context.Context, r store.ClaimRequest) (store.ClaimResult, error) {
		res, err := b.store.Store.Claim(ctx, r)
		if res.Outcome == store.Claimed {
			res.Atomic, res.Remaining = true, bound
		}
		return res, err
	}
	b.store.onRenew = func(context.Context, []store.RenewRequest) ([]store.RenewStatus, error) {
		t.Error("renewed")
		return nil, store.ErrUnknown
	}
	return b
}

func TestAtomicAttemptIsCancelledAtTheBoundOfItsTransaction(t *testing.T) {
	inTime(t, func(t *testing.T) {
		b := setupAtomic(t, time.Minute)
		a, start := b.claim(t, order("k")), time.Now()
		<-a.Context().Done()
		wantCause(t, a.Context(), store.ErrLeaseLost)
		if took := time.Since(start); took != time.Minute {
			t.Errorf("cancelled after %v, want 1m", took)
		}
		release(t, a)
	})
}

func TestAtomicCompletionThatFails(t *testing.T) {
	for err, want := range map[error]reprise.AttemptEnd{
		store.ErrNotApplied:    reprise.EndNotApplied,
		store.ErrUnknown:       reprise.EndUndecided,
		store.ErrUnavailable:   reprise.EndUndecided,
		store.ErrNotReplicated: reprise.EndUndecided,
		store.ErrLeaseLost:     reprise.EndUndecided,
		errors.New("unplaced"): reprise.EndUndecided,
	} {
		inTimeNamed(t, err.Error(), func(t *testing.T) {
			b := setupAtomic(t, time.Minute)
			var calls atomic.Int64
			b.store.onComplete = func(context.Context, store.CompleteRequest) error {
				calls.Add(1)
				return err
			}
			end := complete(t, b.claim(t, order("k")), "answer", want)
			wantError(t, "the result", end.Err, err)
			time.Sleep(time.Minute)
			if n := calls.Load(); n != 1 {
				t.Errorf("asked %d times, want once", n)
			}
			kind, ending := "undecided", reprise.EndUndecided
			if want == reprise.EndNotApplied {
				kind, ending = "not-applied", reprise.EndNotApplied
			}
			if n := b.events.count(kind); n != 1 || b.Stats().Ends[ending] != 1 {
				t.Errorf("%v is reported %d times, and counted %v", kind, n, b.Stats().Ends)
			}
		})
	}
}

func TestAtomicReleaseIsNotRepeated(t *testing.T) {
	inTime(t, func(t *testing.T) {
		b := setupAtomic(t, time.Minute)
		var calls atomic.Int64
		b.store.onRelease = func(context.Context, store.ID, store.Owner) error {
			calls.Add(1)
			return store.ErrUnknown
		}
		wantError(t, "Release", b.claim(t, order("k")).Release(), store.ErrUnknown)
		time.Sleep(time.Minute)
		if n := calls.Load(); n != 1 {
			t.Errorf("asked %d times, want once", n)
		}
	})
}
