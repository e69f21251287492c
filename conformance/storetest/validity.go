package storetest

import (
	"time"

	"github.com/reprise-go/reprise/conformance"
	"github.com/reprise-go/reprise/core/store"
)

var validityCases = []testCase{
	{
		conformance.Case{
			ID:     "validity",
			Rule:   "A claim of a completed record is told how long the record stays valid if it asks, and gets zero if it does not.",
			Source: "ClaimResult.Validity",
		},
		func(e *env) {
			const kept = 10 * time.Minute
			first := e.caller()
			first.claimNew() // for longer
			brief := first
			brief.retention = kept
			start := e.now()
			brief.complete("answer")
			watching := first.rival() // which some stores answer in another way
			watching.waiting = true
			asking := map[string]caller{"of the owner": first, "of another owner": first.rival(), "of one that waits": watching}
			for what, c := range asking {
				got := c.askValidity()
				e.between("the validity "+what, got, kept-e.now().Sub(start)-time.Second, kept)
				c.replay("answer") // does not ask
			}
			other := first.otherRequest()
			other.validity = true
			other.claim(store.Mismatch)
		},
	},
	{
		conformance.Case{
			ID:     "validity-passes",
			Rule:   "The validity of a completed record gets shorter as time passes, and is never longer than what is left of its retention.",
			Source: "ClaimResult.Validity",
		},
		func(e *env) {
			e.unhurried(func(d time.Duration) bool {
				first := e.caller()
				first.retention = 4 * d
				first.claimNew()
				start := e.now()
				first.complete("answer")
				e.advance(d)
				asked := first.rival()
				asked.validity = true
				got, err := asked.tryClaim()
				if e.now().Sub(start) >= 2*d {
					return false
				}
				if err != nil || got.Outcome != store.Completed {
					e.Fatalf("claim answered %v, %v within the retention, want Completed", got.Outcome, err)
				}
				e.between("the validity after a quarter of the retention", got.Validity, 2*d, 3*d)
				return true
			})
		},
	},
	{
		conformance.Case{
			ID:     "validity-age",
			Rule:   "A claim that asks for the validity is told how long ago the record was completed: never more, and at most a little less.",
			Source: "ClaimResult.Age",
		},
		func(e *env) {
			const little = 5 * time.Millisecond
			first := e.caller()
			claimed := e.now()
			first.claimNew()
			e.advance(e.short())
			before := e.now()
			first.complete("answer")
			after := e.now()
			e.advance(e.short() / 2)
			asked := first.rival()
			asked.validity = true
			passed := e.now().Sub(after)
			got := asked.claim(store.Completed).Age
			e.between("the age", got, passed-little, e.now().Sub(before))
			if since := e.now().Sub(claimed); got > since-e.short() {
				e.Errorf("the age is %v, and the claim was %v ago", got, since)
			}
		},
	},
	{
		conformance.Case{
			ID:     "validity-at-the-end",
			Rule:   "A completed record has ended at the instant that its validity says, and not before.",
			Source: "ClaimResult.Validity; Store, interface comment: at = expired",
			Needs:  []conformance.Need{conformance.ExactTime},
		},
		func(e *env) {
			first := e.caller()
			first.claimNew()
			first.retention = e.short()
			first.complete("answer")
			e.advance(e.short() / 3)
			left := first.rival().askValidity()
			e.advance(left - time.Nanosecond)
			asked := first.rival()
			asked.validity = true
			if got := asked.claim(store.Completed); got.Validity != time.Nanosecond || got.Age != first.retention-time.Nanosecond {
				e.Errorf("the validity is %v and the age %v, a nanosecond before the end of %v", got.Validity, got.Age, first.retention)
			}
			e.advance(time.Nanosecond)
			asked.claimNew()
		},
	},
	{
		conformance.Case{
			ID:     "validity-of-takeover",
			Rule:   "The validity of what a takeover completed counts from its completion, whatever the attempts before had.",
			Source: "ClaimResult.Validity",
			Needs:  []conformance.Need{conformance.Leases},
		},
		func(e *env) {
			_, current := e.takenOver()
			current.retention = 10 * time.Minute
			start := e.now()
			current.complete("answer")
			e.between("the validity", current.rival().askValidity(), current.retention-e.now().Sub(start)-time.Second, current.retention)
		},
	},
	{
		conformance.Case{
			ID:     "validity-of-resolution",
			Rule:   "The validity of an answer that an operator gave is that of its resolution.",
			Source: "ClaimResult.Validity; Inspector.Resolve",
			Needs:  []conformance.Need{conformance.Leases, conformance.Inspector},
		},
		func(e *env) {
			first, granted := e.lapsed()
			const kept = 10 * time.Minute
			ctx, cancel := e.call()
			defer cancel()
			start := e.now()
			err := ability[store.Inspector](e.two).Resolve(ctx, first.id, store.Resolution{Fence: granted.Fence, Payload: []byte("resolved"), Retention: kept})
			if err != nil {
				e.Fatalf("resolve: %v, want success", err)
			}
			asked := first.rival()
			asked.validity = true
			got := asked.claim(store.Completed)
			e.between("the validity", got.Validity, kept-e.now().Sub(start)-time.Second, kept)
			e.between("the age", got.Age, 0, e.now().Sub(start))
			first.rival().replay("resolved")
		},
	},
}
