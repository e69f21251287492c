package reprise_test

import (
	"context"
	"testing"
	"time"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
)

// recalling is a store with answers in memory.
type recalling struct {
	reprise.Store

	claims int
	answer func(*recalling, reprise.ClaimRequest) (reprise.ClaimResult, reprise.Store)
}

func (s *recalling) Recall(r reprise.ClaimRequest) (reprise.ClaimResult, reprise.Store) {
	return s.answer(s, r)
}

func (s *recalling) Claim(ctx context.Context, r reprise.ClaimRequest) (reprise.ClaimResult, error) {
	s.claims++
	return s.Store.Claim(ctx, r)
}

// watching embeds a store in order to see its claims.
type watching struct{ *recalling }

// What a store recalls is the answer, without a claim; what is not an answer of a store
// about a completed record is not used.
func TestRecalledAnswers(t *testing.T) {
	t.Parallel()
	answers := func(res reprise.ClaimResult) func(*recalling, reprise.ClaimRequest) (reprise.ClaimResult, reprise.Store) {
		return func(s *recalling, _ reprise.ClaimRequest) (reprise.ClaimResult, reprise.Store) { return res, s }
	}
	completed := reprise.ClaimResult{Outcome: reprise.Completed, Payload: []byte("recalled")}
	valid, expired := completed, completed
	valid.Validity = time.Minute
	expired.Validity, expired.Age = time.Minute, retention
	for name, test := range map[string]struct {
		answer  func(*recalling, reprise.ClaimRequest) (reprise.ClaimResult, reprise.Store)
		wrapped bool
		horizon time.Duration
		want    reprise.Outcome
		claims  int
	}{
		"completed":                    {answer: answers(completed), want: reprise.Completed},
		"mismatch":                     {answer: answers(reprise.ClaimResult{Outcome: reprise.Mismatch}), want: reprise.Mismatch},
		"within the retention":         {answer: answers(valid), horizon: time.Hour, want: reprise.Completed},
		"within the horizon":           {answer: answers(expired), horizon: time.Hour, want: reprise.Expired},
		"validity unknown":             {answer: answers(completed), horizon: time.Hour, want: reprise.Claimed, claims: 1},
		"of a store inside":            {answer: answers(completed), wrapped: true, want: reprise.Claimed, claims: 1},
		"not about a completed record": {answer: answers(reprise.ClaimResult{Outcome: reprise.Claimed}), want: reprise.Claimed, claims: 1},
		"nothing": {answer: func(*recalling, reprise.ClaimRequest) (reprise.ClaimResult, reprise.Store) {
			return completed, nil
		}, want: reprise.Claimed, claims: 1},
		"a panic": {answer: func(*recalling, reprise.ClaimRequest) (reprise.ClaimResult, reprise.Store) {
			panic("broken")
		}, want: reprise.Claimed, claims: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inner := &recalling{Store: memstore.New(), answer: test.answer}
			var store reprise.Store = inner
			if test.wrapped {
				store = watching{inner}
			}
			engine := newEngine(t, store, &events{}, reprise.Config{})
			op := order("k")
			op.Retention, op.Horizon = retention, test.horizon
			got, err := engine.Begin(t.Context(), op)
			if err != nil || got.Outcome != test.want || inner.claims != test.claims {
				t.Fatalf("began %v, %v after %d claims; want %v after %d", got.Outcome, err, inner.claims, test.want, test.claims)
			}
			if got.Outcome == reprise.Completed && string(got.Payload) != "recalled" {
				t.Errorf("replayed %q", got.Payload)
			}
			if got.Attempt != nil {
				complete(t, got.Attempt, "answer", reprise.Recorded)
			}
		})
	}
}
