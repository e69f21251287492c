package storetest

import (
	"time"

	"github.com/reprise-go/reprise/conformance"
	"github.com/reprise-go/reprise/core/store"
)

// lapsed returns the owner of an attempt whose lease has run out.
func (e *env) lapsed() (caller, store.ClaimResult) {
	e.Helper()
	first := e.caller()
	brief := first
	brief.lease = e.short()
	granted := brief.claimNew()
	e.advance(e.short())
	return first, granted
}

// lapsedAll returns the owners of n attempts whose leases have run out.
func (e *env) lapsedAll(n int) []caller {
	e.Helper()
	all := make([]caller, n)
	for i := range all {
		all[i] = e.caller()
		brief := all[i]
		brief.lease = e.short()
		brief.claimNew()
	}
	e.advance(e.short())
	return all
}

// takenOver returns the former owner of an attempt that lapsed, and the one that took
// over and runs.
func (e *env) takenOver() (stale, current caller) {
	e.Helper()
	stale, _ = e.lapsed()
	current = stale.rival()
	current.claim(store.Claimed)
	return stale, current
}

var takeoverCases = []testCase{
	{
		conformance.Case{
			ID:     "takeover",
			Rule:   "A takeover of a lapsed attempt gets the next attempt number, a higher fence and a lease of its own.",
			Source: "Store.Claim",
			Needs:  []conformance.Need{conformance.Leases},
		},
		func(e *env) {
			first, granted := e.lapsed()
			second := first.rival()
			got := second.claim(store.Claimed)
			if got.Attempt != 2 {
				e.Errorf("the takeover is attempt %d, want 2", got.Attempt)
			}
			if got.Fence <= granted.Fence {
				e.Errorf("fence %d after %d", got.Fence, granted.Fence)
			}
			if got.Remaining <= 0 {
				e.Errorf("%v remain of a new lease of %v", got.Remaining, second.lease)
			}
			first.rival().claim(store.InProgress)
			second.complete("second")
			first.rival().replay("second")
		},
	},
	{
		conformance.Case{
			ID:     "takeover-not-early",
			Rule:   "Nobody takes over before the lease ends.",
			Source: "G1 exclusion",
			Needs:  []conformance.Need{conformance.Leases},
		},
		func(e *env) {
			e.unhurried(func(d time.Duration) bool {
				first := e.caller()
				first.lease = 4 * d
				start := e.now()
				first.claimNew()
				e.advance(3 * d)
				got, err := first.rival().tryClaim()
				if e.now().Sub(start) >= first.lease {
					return false
				}
				if err != nil || got.Outcome != store.InProgress {
					e.Fatalf("claim answered %v, %v before the end of the lease, want InProgress", got.Outcome, err)
				}
				return true
			})
		},
	},
	{
		conformance.Case{
			ID:     "takeover-at-the-end",
			Rule:   "A lease has ended at the instant of its end, and not before.",
			Source: "Store, interface comment: at = expired",
			Needs:  []conformance.Need{conformance.Leases, conformance.ExactTime},
		},
		func(e *env) {
			first := e.caller()
			first.lease = e.short()
			first.claimNew()
			e.advance(e.short() - time.Nanosecond)
			if got := first.rival().claim(store.InProgress); got.Remaining != time.Nanosecond {
				e.Errorf("%v remain, want 1ns", got.Remaining)
			}
			e.advance(time.Nanosecond)
			first.rival().claim(store.Claimed)
		},
	},
	{
		conformance.Case{
			ID:     "takeover-refused",
			Rule:   "Without Takeover a lapsed attempt of another owner answers Lapsed, and stays as it is.",
			Source: "Store.Claim",
			Needs:  []conformance.Need{conformance.Leases},
		},
		func(e *env) {
			first, _ := e.lapsed()
			careful := first.rival()
			careful.takeover = false
			careful.claim(store.Lapsed)
			careful.claim(store.Lapsed)
			careful.completeLost("of a claim that was refused")
			first.complete("late")
			careful.replay("late")
		},
	},
	{
		conformance.Case{
			ID:     "takeover-max-attempts",
			Rule:   "Takeovers stop at MaxAttempts; 0 is unlimited.",
			Source: "ClaimRequest.MaxAttempts",
			Needs:  []conformance.Need{conformance.Leases},
		},
		func(e *env) {
			current, _ := e.lapsed()
			for attempt := 2; attempt <= 3; attempt++ {
				current = current.rival()
				current.maxAttempts = attempt - 1
				current.claim(store.Lapsed)
				current.maxAttempts = attempt
				current.lease = e.short()
				if got := current.claim(store.Claimed); got.Attempt != attempt {
					e.Fatalf("the takeover is attempt %d, want %d", got.Attempt, attempt)
				}
				e.advance(current.lease)
			}
			current = current.rival()
			current.maxAttempts = 0
			if got := current.claim(store.Claimed); got.Attempt != 4 {
				e.Fatalf("the takeover is attempt %d, want 4", got.Attempt)
			}
		},
	},
	{
		conformance.Case{
			ID:     "takeover-binding",
			Rule:   "A lapsed record still belongs to its first request: a different request is a Mismatch, with or without Takeover.",
			Source: "G6 binding",
			Needs:  []conformance.Need{conformance.Leases},
		},
		func(e *env) {
			first, _ := e.lapsed()
			other := first.otherRequest()
			for _, other.takeover = range []bool{true, false} {
				other.claim(store.Mismatch)
			}
			current := first.rival()
			current.claim(store.Claimed)
			other.claim(store.Mismatch)
		},
	},
	{
		conformance.Case{
			ID:     "takeover-never-of-completed",
			Rule:   "A completed record has no lease that can lapse: it is replayed for its retention.",
			Source: "Store.Claim",
			Needs:  []conformance.Need{conformance.Leases},
		},
		func(e *env) {
			first := e.caller()
			first.lease = e.short()
			first.claimNew()
			first.complete("answer")
			e.advance(first.lease)
			first.rival().replay("answer")
			first.replay("answer")
		},
	},
	{
		conformance.Case{
			ID:     "takeover-own",
			Rule:   "An owner that claims its own lapsed attempt is granted it with Remaining 0 or less, with or without Takeover.",
			Source: "Store.Claim",
			Needs:  []conformance.Need{conformance.Leases},
		},
		func(e *env) {
			first, granted := e.lapsed()
			for _, first.takeover = range []bool{false, true} {
				got := first.claim(store.Claimed)
				if got.Attempt != granted.Attempt || got.Fence != granted.Fence {
					e.Errorf("attempt %d with fence %d became attempt %d with fence %d", granted.Attempt, granted.Fence, got.Attempt, got.Fence)
				}
				if got.Remaining > 0 {
					e.Errorf("%v remain of a lease that lapsed", got.Remaining)
				}
			}
			first.renew(store.Renewed)
			first.complete("answer")
		},
	},
	{
		conformance.Case{
			ID:     "takeover-own-after-rival",
			Rule:   "After a takeover the former owner is no longer an owner: its claim is answered like any other.",
			Source: "Store.Claim, G3 fencing",
			Needs:  []conformance.Need{conformance.Leases},
		},
		func(e *env) {
			stale, current := e.takenOver()
			stale.claim(store.InProgress)
			current.complete("current")
			stale.replay("current")
		},
	},
	{
		conformance.Case{
			ID:     "takeover-validity",
			Rule:   "The retention of a record that is never completed counts from the last takeover.",
			Source: "G7 horizon",
			Needs:  []conformance.Need{conformance.Leases},
		},
		func(e *env) {
			first, _ := e.lapsed()
			second := first.rival()
			second.lease, second.retention = e.short(), e.short()
			second.claim(store.Claimed)
			e.advance(e.short())
			first.otherRequest().claimNew()
		},
	},
}
