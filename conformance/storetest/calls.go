package storetest

import (
	"fmt"
	"time"

	"github.com/reprise-go/reprise/core/store"
)

// answer is what a claim must get.
type answer struct {
	outcome store.Outcome
	attempt int    // of Claimed: 0 is the attempt that the caller has already
	payload string // of Completed

	bounded   bool
	low, high time.Duration // of Remaining
}

// The answers to a claim. A claim that is granted anew is an attempt with a whole lease,
// and its fence grows with the attempt and never falls.
var (
	first      = attempt(1) // no earlier record is seen
	again      = answer{outcome: store.Claimed}
	inProgress = answer{outcome: store.InProgress}
	lapsed     = answer{outcome: store.Lapsed}
	expired    = answer{outcome: store.Expired}
	mismatch   = answer{outcome: store.Mismatch}
)

func attempt(n int) answer { return answer{outcome: store.Claimed, attempt: n} }

func replay(payload string) answer { return answer{outcome: store.Completed, payload: payload} }

// leaving bounds Remaining.
func (w answer) leaving(low, high time.Duration) answer {
	w.bounded, w.low, w.high = true, low, high
	return w
}

// check returns what is wrong with the result of a claim.
func (w answer) check(c *caller, before, got store.ClaimResult) error {
	anew := w.attempt > 0
	switch {
	case got.Outcome != w.outcome:
		return fmt.Errorf("claim answered %v, want %v", got.Outcome, w.outcome)
	case string(got.Payload) != w.payload:
		return fmt.Errorf("replayed %.64q, want %.64q", got.Payload, w.payload)
	case w.bounded && (got.Remaining < w.low || got.Remaining > w.high):
		return fmt.Errorf("%v remain, want %v to %v", got.Remaining, w.low, w.high)
	case got.Outcome != store.Claimed:
		return nil
	case anew && got.Attempt != w.attempt:
		return fmt.Errorf("claim is attempt %d, want %d", got.Attempt, w.attempt)
	case anew && (got.Fence < c.fence || got.Attempt > 1 && got.Fence == c.fence):
		return fmt.Errorf("attempt %d has fence %d after %d", got.Attempt, got.Fence, c.fence)
	case !anew && (got.Attempt != before.Attempt || got.Fence != before.Fence):
		return fmt.Errorf("attempt %d with fence %d became attempt %d with fence %d", before.Attempt, before.Fence, got.Attempt, got.Fence)
	}
	return nil
}

// call is a step of an actor.
func (p actor) call(what string, do func(*scene, *caller) error) step {
	return step{p.String() + " " + what, func(s *scene) error {
		s.Helper()
		return do(s, s.caller(p))
	}}
}

// isGiven is a step without a call, after which the actor has what it was given.
func (p actor) isGiven() step {
	return p.call("goes on", func(*scene, *caller) error { return nil })
}

func (p actor) claims(want answer) step {
	return p.call(fmt.Sprint("claims: ", want.outcome), func(_ *scene, c *caller) error {
		before := c.granted
		got, err := c.tryClaim()
		if err != nil {
			return wantError("claim", err, nil)
		}
		if err := want.check(c, before, got); err != nil {
			return err
		}
		if got.Outcome == store.Claimed {
			c.fence, c.asked = got.Fence, c.Retention
			c.seen = got.Fence
			c.claimedAt = time.Time{}
			if want.attempt > 0 {
				c.payload, c.reason, c.resolved, c.completedAt = "", "", false, time.Time{}
			}
		}
		return nil
	})
}

// isRefused claims and is granted nothing, whatever the reason.
func (p actor) isRefused() step {
	return p.call("claims in vain", func(_ *scene, c *caller) error {
		if got, err := c.tryClaim(); err != nil || got.Outcome == store.Claimed {
			return unlike("claim", got.Outcome, err, "a refusal")
		}
		return nil
	})
}

// lapses claims as attempt n, with a short lease that then ends; what comes after has a
// long one.
func (p actor) lapses(n int) step {
	return step{p.String() + " lapses", func(s *scene) error {
		s.Helper()
		return s.run([]step{p.lease(short).claims(attempt(n)), passes(short), p.lease(long).isGiven()})
	}}
}

// ends claims, and is not seen any more: lease and retention end.
func (p actor) ends() step {
	return step{p.String() + " ends unseen", func(s *scene) error {
		s.Helper()
		return s.run([]step{p.lease(short).keep(short).claims(first), passes(short), p.lease(long).keep(long).isGiven()})
	}}
}

// The errors that a step may want. Without one it wants success.
var (
	lost    = store.ErrLeaseLost
	invalid = store.ErrInvalid
	changed = store.ErrRecordChanged
	corrupt = store.ErrCorrupt
)

// wanted returns the error that a step wants.
func wanted(want []error) error {
	if len(want) == 0 {
		return nil
	}
	return want[0]
}

func (p actor) completes(payload string, want ...error) step {
	return p.call("completes", func(_ *scene, c *caller) error {
		err := c.tryComplete(payload)
		if err == nil && c.completedAt.IsZero() && c.payload == "" {
			c.payload, c.reason = payload, ""
		}
		return wantError("complete", err, wanted(want))
	})
}

func (p actor) releases() step {
	return p.call("releases", func(_ *scene, c *caller) error { return wantError("release", c.tryRelease(), nil) })
}

func (p actor) saysUnknown(reason string, want ...error) step {
	return p.call("says unknown", func(_ *scene, c *caller) error {
		err := c.tryUnknown(reason)
		if err == nil && c.reason == "" {
			c.reason, c.AtMostOnce = reason, true
		}
		return wantError("unknown", err, wanted(want))
	})
}

func (p actor) renews(want store.RenewStatus) step {
	return p.call("renews: "+want.String(), func(_ *scene, c *caller) error {
		got, err := c.tryRenew()
		if err != nil || got[0] != want {
			return unlike("renew", got, err, want)
		}
		return nil
	})
}

// isDamaged damages the record of the actor's operation.
func (p actor) isDamaged(how Corruption) step {
	return p.call("has a record with "+string(how), func(_ *scene, c *caller) error {
		c.fixture.Corrupt(c, c.ID, how)
		return nil
	})
}
