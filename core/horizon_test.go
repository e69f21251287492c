package reprise_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/store"
)

const (
	kept    = time.Hour      // the retention of these tests
	horizon = 24 * time.Hour // and the time after it
)

// once is an operation that must not run again after its retention either.
func once(key string) reprise.Operation {
	op := order(key)
	op.Retention, op.Horizon = kept, horizon
	return op
}

func TestResultIsExpiredFromItsRetentionToTheHorizon(t *testing.T) {
	inTime(t, func(t *testing.T) {
		b := setup(t, reprise.Config{})
		a := b.claim(t, once("k"))
		time.Sleep(5 * time.Second) // the retention counts from the completion
		complete(t, a, "answer", reprise.EndRecorded)
		other := changed(once("k"))

		time.Sleep(kept - 1)
		if got := b.want(t, once("k"), reprise.Replayed); string(got.Payload) != "answer" {
			t.Errorf("replayed %q", got.Payload)
		}
		time.Sleep(time.Nanosecond)
		if got := b.want(t, once("k"), reprise.Expired); got.Payload != nil {
			t.Errorf("expired with the payload %q", got.Payload)
		}
		b.want(t, other, reprise.Mismatch)
		time.Sleep(horizon - 1)
		b.want(t, once("k"), reprise.Expired)
		b.want(t, other, reprise.Mismatch)
		time.Sleep(time.Nanosecond)
		release(t, b.claim(t, other))
		b.events.want(t, "claimed", "completed", "replayed",
			"expired", "mismatch", "expired", "mismatch",
			"claimed", "released")
	})
}

// A lapsed attempt may have run: it is remembered as long.
func TestALapsedRecordIsRememberedUntilTheHorizonEnds(t *testing.T) {
	inTime(t, func(t *testing.T) {
		shared := memstore.New()
		dead, b := setupOver(t, shared, reprise.Config{}), setupOver(t, shared, reprise.Config{})
		op := once("k")
		op.Preset = reprise.AtMostOnce
		left := dead.claim(t, op)
		_ = closeWithin(t, dead.Engine, 0)
		defer func() { _ = left.Release() }()
		time.Sleep(kept + horizon - time.Second)
		b.want(t, op, reprise.Lapsed)
		time.Sleep(time.Second)
		release(t, b.claim(t, op))
	})
}

// An operator's resolution is replayed for the retention of the policy, even if the store
// keeps it longer.
func TestResolvedRecordIsReplayedBeforeItExpires(t *testing.T) {
	inTime(t, func(t *testing.T) {
		st := memstore.New()
		b := setupOver(t, st, reprise.Config{})
		op := once("k")
		owner := store.NewOwner()
		granted, err := st.Claim(t.Context(), store.ClaimRequest{
			ID: idOf(op), Owner: owner, Fingerprint: op.Fingerprint, Lease: time.Second, Retention: kept + horizon,
		})
		wantError(t, "claim", err, nil)
		time.Sleep(time.Minute)
		err = st.Resolve(t.Context(), idOf(op), store.Resolution{Fence: granted.Fence, Payload: []byte("resolved"), Retention: 2 * kept})
		wantError(t, "resolve", err, nil)
		b.want(t, op, reprise.Replayed)
		time.Sleep(kept)
		b.want(t, op, reprise.Expired)
		time.Sleep(kept)
		release(t, b.claim(t, op))
	})
}

// Records of before the horizon was turned on have none, so they are replayed and then
// forgotten as before. Once it is off again, those that have one are replayed for as long
// as they are remembered.
func TestAHorizonIsTurnedOnAndOffAgain(t *testing.T) {
	inTime(t, func(t *testing.T) {
		b := setup(t, reprise.Config{})
		without := func(key string) reprise.Operation {
			op := once(key)
			op.Horizon = 0
			return op
		}
		complete(t, b.claim(t, without("old")), "old", reprise.EndRecorded)
		complete(t, b.claim(t, once("new")), "new", reprise.EndRecorded)
		time.Sleep(kept - 1)
		b.want(t, once("old"), reprise.Replayed)
		b.want(t, once("new"), reprise.Replayed)
		time.Sleep(time.Nanosecond)
		release(t, b.claim(t, once("old")))
		b.want(t, once("new"), reprise.Expired)

		b.want(t, without("new"), reprise.Replayed)
		time.Sleep(horizon - 1)
		b.want(t, without("new"), reprise.Replayed)
		time.Sleep(time.Nanosecond)
		release(t, b.claim(t, without("new")))
	})
}

// A duplicate that shares the claim of another one does not share its policy.
func TestSharedClaimAppliesTheHorizonOfEachCall(t *testing.T) {
	inTime(t, func(t *testing.T) {
		b := setup(t, reprise.Config{})
		claims := slowClaims(b)
		complete(t, b.claim(t, once("k")), "answer", reprise.EndRecorded)
		time.Sleep(kept)
		claims.Store(0)
		longer, without := once("k"), once("k")
		longer.Retention = 2 * kept
		without.Horizon = 0
		for _, order := range [][]reprise.Operation{{once("k"), longer, without}, {without, once("k"), longer}, {longer, without, once("k")}} {
			results := make([]answers, len(order))
			for i, op := range order {
				results[i].begin(t.Context(), b.Engine, op, 2)
				synctest.Wait()
			}
			for i, op := range order {
				results[i].Wait()
				want := reprise.Replayed
				if op.Horizon > 0 && op.Retention == kept {
					want = reprise.Expired
				}
				results[i].want(t, want, 2)
			}
		}
		b.want(t, changed(once("k")), reprise.Mismatch)
		if claims.Load() >= 3*6 {
			t.Errorf("%d claims: nothing was shared", claims.Load())
		}
	})
}

func TestWaitingDuplicateGetsTheOutcomeOfItsHorizon(t *testing.T) {
	inTime(t, func(t *testing.T) {
		b := setup(t, reprise.Config{})
		a := b.claim(t, once("k"))
		var s answers
		s.begin(t.Context(), b.Engine, wait(once("k"), time.Minute), 2)
		time.Sleep(10 * time.Second)
		complete(t, a, "answer", reprise.EndRecorded)
		s.Wait()
		s.want(t, reprise.Replayed, 2)
	})
}

// A store that does not say how old its records are would replay for ever.
func TestAHorizonNeedsAStoreThatKnowsTheValidity(t *testing.T) {
	inTime(t, func(t *testing.T) {
		b := setup(t, reprise.Config{})
		b.store.onClaim = func(ctx context.Context, r store.ClaimRequest) (store.ClaimResult, error) {
			r.Validity = false
			return b.store.Store.Claim(ctx, r)
		}
		complete(t, b.claim(t, once("k")), "answer", reprise.EndRecorded)
		_, err := b.Begin(t.Context(), once("k"))
		wantError(t, "begin", err, store.ErrMisconfigured)
		without := once("k")
		without.Horizon = 0
		b.want(t, without, reprise.Replayed)
	})
}

// The validity is asked for only where there is a horizon.
func TestWithoutAHorizonTheValidityIsNotRequested(t *testing.T) {
	inTime(t, func(t *testing.T) {
		b := setup(t, reprise.Config{})
		b.store.onClaim = func(ctx context.Context, r store.ClaimRequest) (store.ClaimResult, error) {
			if r.Validity || r.Retention != retention {
				t.Errorf("asked for %+v", r)
			}
			return b.store.Store.Claim(ctx, r)
		}
		complete(t, b.claim(t, order("k")), "answer", reprise.EndRecorded)
		b.want(t, order("k"), reprise.Replayed)
	})
}

func TestAHorizonOutOfRangeIsRefused(t *testing.T) {
	inTime(t, func(t *testing.T) {
		b := setup(t, reprise.Config{})
		for _, d := range []time.Duration{-1, time.Millisecond - 1, store.MaxDuration - kept + 1, store.MaxDuration + 1, 1<<63 - 1} {
			op := once("k")
			op.Horizon = d
			if _, err := b.Begin(t.Context(), op); err == nil || !strings.Contains(err.Error(), "Operation.Horizon") {
				t.Errorf("%v: %v", d, err)
			}
		}
		op := once("k")
		op.Horizon = store.MaxDuration - kept
		a := b.claim(t, op)
		if got := a.View().Retention(); got != store.MaxDuration {
			t.Errorf("a transaction of the handler's own would keep the answer for %v, want %v", got, store.MaxDuration)
		}
		release(t, a)
	})
}

// Only a completed record expires, and only where the operation has a horizon: without
// one, a record that the store keeps longer than a shortened retention is replayed.
func TestOnlyACompletedRecordExpires(t *testing.T) {
	inTime(t, func(t *testing.T) {
		for age, outcomes := range map[time.Duration]map[store.Outcome][2]reprise.Outcome{ // without a horizon, and with one
			0:            {store.Completed: {reprise.Replayed, reprise.Replayed}},
			kept - 1:     {store.Completed: {reprise.Replayed, reprise.Replayed}},
			kept:         {store.Completed: {reprise.Replayed, reprise.Expired}},
			100 * kept:   {store.Completed: {reprise.Replayed, reprise.Expired}, store.Mismatch: {reprise.Mismatch, reprise.Mismatch}, store.Lapsed: {reprise.Lapsed, reprise.Lapsed}},
			-time.Second: {store.Completed: {reprise.Replayed, reprise.Replayed}},
		} {
			for outcome, want := range outcomes {
				b := setup(t, reprise.Config{})
				b.store.onClaim = func(context.Context, store.ClaimRequest) (store.ClaimResult, error) {
					return store.ClaimResult{Outcome: outcome, Payload: []byte("answer"), Age: age, Validity: time.Hour}, nil
				}
				without := once("k")
				without.Horizon = 0
				b.want(t, without, want[0])
				b.want(t, once("k"), want[1])
			}
		}
	})
}

// A result that is old enough for one retention is not too old for another: duplicates
// of two retentions wait apart.
func TestWaitersOfTwoRetentionsDoNotShareAResult(t *testing.T) {
	inTime(t, func(t *testing.T) {
		b := setup(t, reprise.Config{})
		var ended atomic.Bool
		b.store.onClaim = func(context.Context, store.ClaimRequest) (store.ClaimResult, error) {
			if !ended.Load() {
				return store.ClaimResult{Outcome: store.InProgress, Remaining: lease}, nil
			}
			return store.ClaimResult{Outcome: store.Completed, Payload: []byte("answer"), Age: kept / 2, Validity: time.Hour}, nil
		}
		short := once("k")
		short.Retention = kept / 4
		var long, brief answers
		long.begin(t.Context(), b.Engine, wait(once("k"), time.Minute), 2)
		brief.begin(t.Context(), b.Engine, wait(short, time.Minute), 2)
		ended.Store(true)
		long.Wait()
		brief.Wait()
		long.want(t, reprise.Replayed, 2)
		brief.want(t, reprise.Expired, 2)
	})
}
