package reprise_test

import (
	"strings"
	"testing"
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

// A record is judged by the policy that claimed it, whatever the retry has: a deployment
// that changes the policy changes nothing for what already runs or has ended.
func TestRecordIsJudgedByItsOwnPolicy(t *testing.T) {
	inTime(t, func(t *testing.T) {
		b := setup(t, reprise.Config{})
		without := func(key string) reprise.Operation {
			op := once(key)
			op.Horizon, op.Retention = 0, 2*kept
			return op
		}
		complete(t, b.claim(t, without("old")), "old", reprise.EndRecorded)
		complete(t, b.claim(t, once("new")), "new", reprise.EndRecorded)
		time.Sleep(kept)
		b.want(t, once("old"), reprise.Replayed)
		b.want(t, without("new"), reprise.Expired)
		time.Sleep(kept)
		release(t, b.claim(t, once("old")))
		time.Sleep(horizon - kept - 1)
		b.want(t, without("new"), reprise.Expired)
		time.Sleep(time.Nanosecond)
		release(t, b.claim(t, without("new")))
	})
}

// So is a lapsed record: only one that was claimed with Recoverable is taken over, by a
// retry of either preset.
func TestLapsedRecordIsJudgedByItsOwnPreset(t *testing.T) {
	for claimed, want := range map[reprise.Preset]reprise.Outcome{reprise.Recoverable: reprise.Claimed, reprise.AtMostOnce: reprise.Lapsed} {
		for _, retry := range []reprise.Preset{reprise.Recoverable, reprise.AtMostOnce} {
			t.Run(claimed.String()+", a retry with "+retry.String(), func(t *testing.T) {
				inTime(t, func(t *testing.T) {
					st := memstore.New()
					dead, b := setupOver(t, st, reprise.Config{}), setupOver(t, st, reprise.Config{})
					op := order("k")
					op.Preset = claimed
					left := dead.claim(t, op)
					_ = closeWithin(t, dead.Engine, 0)
					defer func() { _ = left.Release() }()
					time.Sleep(2 * lease)
					op.Preset = retry
					res, err := b.Begin(t.Context(), op)
					if err != nil || res.Outcome != want {
						t.Errorf("%v, %v; want %v", res.Outcome, err, want)
					}
					if res.Attempt != nil {
						release(t, res.Attempt)
					}
				})
			})
		}
	}
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
		if got := a.View().Policy(); got.Remembered() != store.MaxDuration {
			t.Errorf("a transaction of the handler's own would remember the operation for %v, want %v", got.Remembered(), store.MaxDuration)
		}
		release(t, a)
	})
}
