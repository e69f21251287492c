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
)

const (
	kept    = time.Hour      // the retention of these tests
	horizon = 24 * time.Hour // and what comes after it
)

// once is an operation that must not run again after its retention either.
func once(key string) reprise.Operation {
	op := order(key)
	op.Retention, op.Horizon = kept, horizon
	return op
}

func TestAfterItsRetentionAnAnswerIsExpiredUntilTheHorizonEnds(t *testing.T) {
	inTime(t, func(t *testing.T) {
		b := setup(t, reprise.Config{})
		a := b.claim(t, once("k"))
		time.Sleep(5 * time.Second) // the retention counts from the completion
		complete(t, a, "answer", reprise.Recorded)
		other := changed(once("k"))

		time.Sleep(kept - 1)
		if got := b.want(t, once("k"), reprise.Completed); string(got.Payload) != "answer" {
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
		b.events.want(t, reprise.EventClaimed, reprise.EventCompleted, reprise.EventReplayed,
			reprise.EventExpired, reprise.EventMismatch, reprise.EventExpired, reprise.EventMismatch,
			reprise.EventClaimed, reprise.EventReleased)
	})
}

// Nobody knows whether what lapsed has run: it is remembered as long.
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

// What an operator answered is replayed for the retention of the policy, however long the
// resolution keeps it.
func TestAResolvedAnswerIsReplayedBeforeItExpires(t *testing.T) {
	inTime(t, func(t *testing.T) {
		store := memstore.New()
		b := setupOver(t, store, reprise.Config{})
		op := once("k")
		owner := reprise.NewOwner()
		granted, err := store.Claim(t.Context(), reprise.ClaimRequest{
			ID: idOf(op), Owner: owner, Fingerprint: op.Fingerprint, Lease: time.Second, Retention: kept + horizon,
		})
		wantError(t, "claim", err, nil)
		time.Sleep(time.Minute)
		err = store.Resolve(t.Context(), idOf(op), reprise.Resolution{Fence: granted.Fence, Payload: []byte("resolved"), Retention: 2 * kept})
		wantError(t, "resolve", err, nil)
		b.want(t, op, reprise.Completed)
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
		complete(t, b.claim(t, without("old")), "old", reprise.Recorded)
		complete(t, b.claim(t, once("new")), "new", reprise.Recorded)
		time.Sleep(kept - 1)
		b.want(t, once("old"), reprise.Completed)
		b.want(t, once("new"), reprise.Completed)
		time.Sleep(time.Nanosecond)
		release(t, b.claim(t, once("old")))
		b.want(t, once("new"), reprise.Expired)

		b.want(t, without("new"), reprise.Completed)
		time.Sleep(horizon - 1)
		b.want(t, without("new"), reprise.Completed)
		time.Sleep(time.Nanosecond)
		release(t, b.claim(t, without("new")))
	})
}

// A duplicate that shares the claim of another one does not share its policy.
func TestASharedClaimAnswersEachByItsOwnHorizon(t *testing.T) {
	inTime(t, func(t *testing.T) {
		b := setup(t, reprise.Config{})
		claims := slowClaims(b)
		complete(t, b.claim(t, once("k")), "answer", reprise.Recorded)
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
				want := reprise.Completed
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

func TestAWaitingDuplicateIsAnsweredByItsHorizon(t *testing.T) {
	inTime(t, func(t *testing.T) {
		b := setup(t, reprise.Config{})
		a := b.claim(t, once("k"))
		var s answers
		s.begin(t.Context(), b.Engine, wait(once("k"), time.Minute), 2)
		time.Sleep(10 * time.Second)
		complete(t, a, "answer", reprise.Recorded)
		s.Wait()
		s.want(t, reprise.Completed, 2)
	})
}

// A store that does not say how old its records are would replay for ever.
func TestAHorizonNeedsAStoreThatKnowsTheValidity(t *testing.T) {
	inTime(t, func(t *testing.T) {
		b := setup(t, reprise.Config{})
		b.store.onClaim = func(ctx context.Context, r reprise.ClaimRequest) (reprise.ClaimResult, error) {
			r.Validity = false
			return b.store.Store.Claim(ctx, r)
		}
		complete(t, b.claim(t, once("k")), "answer", reprise.Recorded)
		_, err := b.Begin(t.Context(), once("k"))
		wantError(t, "begin", err, reprise.ErrMisconfigured)
		without := once("k")
		without.Horizon = 0
		b.want(t, without, reprise.Completed)
	})
}

// The validity is asked for only where there is a horizon.
func TestWithoutAHorizonNobodyAsksForTheValidity(t *testing.T) {
	inTime(t, func(t *testing.T) {
		b := setup(t, reprise.Config{})
		b.store.onClaim = func(ctx context.Context, r reprise.ClaimRequest) (reprise.ClaimResult, error) {
			if r.Validity || r.Retention != retention {
				t.Errorf("asked for %+v", r)
			}
			return b.store.Store.Claim(ctx, r)
		}
		complete(t, b.claim(t, order("k")), "answer", reprise.Recorded)
		b.want(t, order("k"), reprise.Completed)
	})
}

func TestAHorizonOutOfRangeIsRefused(t *testing.T) {
	inTime(t, func(t *testing.T) {
		b := setup(t, reprise.Config{})
		for _, d := range []time.Duration{-1, time.Millisecond - 1, reprise.MaxDuration - kept + 1, reprise.MaxDuration + 1, 1<<63 - 1} {
			op := once("k")
			op.Horizon = d
			if _, err := b.Begin(t.Context(), op); err == nil || !strings.Contains(err.Error(), "Operation.Horizon") {
				t.Errorf("%v: %v", d, err)
			}
		}
		op := once("k")
		op.Horizon = reprise.MaxDuration - kept
		a := b.claim(t, op)
		if got := a.View().Retention(); got != reprise.MaxDuration {
			t.Errorf("a transaction of the handler's own would keep the answer for %v, want %v", got, reprise.MaxDuration)
		}
		release(t, a)
	})
}

// Only an answer expires, and only where the operation has a horizon: what the store
// keeps longer than a shortened retention is replayed without one.
func TestOnlyAnAnswerExpires(t *testing.T) {
	inTime(t, func(t *testing.T) {
		for age, outcomes := range map[time.Duration]map[reprise.Outcome][2]reprise.Outcome{ // without a horizon, and with one
			0:            {reprise.Completed: {reprise.Completed, reprise.Completed}},
			kept - 1:     {reprise.Completed: {reprise.Completed, reprise.Completed}},
			kept:         {reprise.Completed: {reprise.Completed, reprise.Expired}},
			100 * kept:   {reprise.Completed: {reprise.Completed, reprise.Expired}, reprise.Mismatch: {reprise.Mismatch, reprise.Mismatch}, reprise.Lapsed: {reprise.Lapsed, reprise.Lapsed}},
			-time.Second: {reprise.Completed: {reprise.Completed, reprise.Completed}},
		} {
			for outcome, want := range outcomes {
				b := setup(t, reprise.Config{})
				b.store.onClaim = func(context.Context, reprise.ClaimRequest) (reprise.ClaimResult, error) {
					return reprise.ClaimResult{Outcome: outcome, Payload: []byte("answer"), Age: age, Validity: time.Hour}, nil
				}
				without := once("k")
				without.Horizon = 0
				b.want(t, without, want[0])
				b.want(t, once("k"), want[1])
			}
		}
	})
}

// An answer that is old enough for one retention is not too old for another: duplicates
// of two retentions wait apart.
func TestWaitersOfTwoRetentionsAreAnsweredApart(t *testing.T) {
	inTime(t, func(t *testing.T) {
		b := setup(t, reprise.Config{})
		var ended atomic.Bool
		b.store.onClaim = func(context.Context, reprise.ClaimRequest) (reprise.ClaimResult, error) {
			if !ended.Load() {
				return reprise.ClaimResult{Outcome: reprise.InProgress, Remaining: lease}, nil
			}
			return reprise.ClaimResult{Outcome: reprise.Completed, Payload: []byte("answer"), Age: kept / 2, Validity: time.Hour}, nil
		}
		short := once("k")
		short.Retention = kept / 4
		var long, brief answers
		long.begin(t.Context(), b.Engine, wait(once("k"), time.Minute), 2)
		brief.begin(t.Context(), b.Engine, wait(short, time.Minute), 2)
		ended.Store(true)
		long.Wait()
		brief.Wait()
		long.want(t, reprise.Completed, 2)
		brief.want(t, reprise.Expired, 2)
	})
}
