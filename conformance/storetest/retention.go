package storetest

import (
	"time"

	"github.com/reprise-go/reprise/conformance"
	"github.com/reprise-go/reprise/core/store"
)

// unseen returns the owner of an attempt that lapsed and is past its validity.
func (e *env) unseen() caller {
	e.Helper()
	first := e.caller()
	brief := first
	brief.lease, brief.retention = e.short(), e.short()
	brief.claimNew()
	e.advance(e.short())
	return first
}

var retentionCases = []testCase{
	{
		conformance.Case{
			ID:     "retention-unseen",
			Rule:   "A lapsed attempt past its validity is unseen: the next claim is granted as new, for any request and without Takeover.",
			Source: "Store, Records; G7 horizon",
			Needs:  []conformance.Need{conformance.Leases},
		},
		func(e *env) {
			careful := e.unseen().otherRequest()
			careful.takeover = false
			careful.maxAttempts = 1
			careful.claimNew()
		},
	},
	{
		conformance.Case{
			ID:     "retention-unseen-own",
			Rule:   "A lapsed attempt past its validity is unseen to its owner too: its claim is granted as a new one.",
			Source: "Store, Records",
			Needs:  []conformance.Need{conformance.Leases},
		},
		func(e *env) {
			first := e.unseen()
			if got := first.claimNew(); got.Remaining <= 0 {
				e.Errorf("%v remain of a new lease", got.Remaining)
			}
			first.rival().claim(store.InProgress)
		},
	},
	{
		conformance.Case{
			ID:     "retention-unseen-release",
			Rule:   "Releasing an unseen attempt is not an error and does not affect the attempt after it.",
			Source: "Store, Records; Store.Release",
			Needs:  []conformance.Need{conformance.Leases},
		},
		func(e *env) {
			first := e.unseen()
			first.release()
			second := first.rival()
			second.claimNew()
			first.release()
			first.claim(store.InProgress)
			second.complete("second")
		},
	},
	{
		conformance.Case{
			ID:     "retention-live-lease",
			Rule:   "A live lease outlives the retention of its claim: nobody else runs, and the attempt completes.",
			Source: "Store, Records; G1 exclusion",
			Needs:  []conformance.Need{conformance.Leases},
		},
		func(e *env) {
			first := e.caller()
			brief := first
			brief.retention = e.short()
			brief.claimNew()
			e.advance(2 * brief.retention)
			first.rival().claim(store.InProgress)
			first.otherRequest().claim(store.Mismatch)
			first.complete("answer")
			first.rival().replay("answer")
		},
	},
	{
		conformance.Case{
			ID:     "retention-renewed-lease",
			Rule:   "A lease that was renewed outlives the retention of its claim as well.",
			Source: "Store, Records; Store.Renew",
			Needs:  []conformance.Need{conformance.Leases},
		},
		func(e *env) {
			e.unhurried(func(d time.Duration) bool {
				first := e.caller()
				brief := first
				brief.lease, brief.retention = d, d
				start := e.now()
				brief.claimNew()
				status := e.renewAll(first)[0]
				if e.now().Sub(start) >= d {
					return false
				}
				if status != store.Renewed {
					e.Fatalf("renew answered %v, want %v", status, store.Renewed)
				}
				e.advance(2 * d)
				first.rival().claim(store.InProgress)
				first.complete("answer")
				first.rival().replay("answer")
				return true
			})
		},
	},
	{
		conformance.Case{
			ID:     "retention-from-completion",
			Rule:   "A response is replayed for the retention counted from its completion, not from its claim.",
			Source: "Store.Complete, G7 horizon",
		},
		func(e *env) {
			e.unhurried(func(d time.Duration) bool {
				first := e.caller()
				first.retention = d
				first.claimNew()
				e.advance(d)
				start := e.now()
				first.complete("answer")
				got, err := first.rival().tryClaim()
				if e.now().Sub(start) >= d {
					return false
				}
				if err != nil || got.Outcome != store.Completed {
					e.Fatalf("claim answered %v, %v within the retention, want Completed", got.Outcome, err)
				}
				return true
			})
		},
	},
	{
		conformance.Case{
			ID:     "retention-ends",
			Rule:   "When the retention of a response ends, the ID is new, even if its claim had a longer retention.",
			Source: "Store.Complete, G7 horizon",
		},
		func(e *env) {
			first := e.caller()
			first.claimNew()
			brief := first
			brief.retention = e.short()
			brief.complete("answer")
			e.advance(brief.retention)
			second := first.otherRequest()
			second.takeover = false
			second.claimNew()
			second.complete("second")
			second.rival().replay("second")
		},
	},
	{
		conformance.Case{
			ID:     "retention-at-the-end",
			Rule:   "A retention has ended at the instant of its end, and not before.",
			Source: "Store, interface comment: at = expired",
			Needs:  []conformance.Need{conformance.ExactTime},
		},
		func(e *env) {
			first := e.caller()
			first.claimNew()
			first.retention = e.short()
			first.complete("answer")
			e.advance(e.short() - time.Nanosecond)
			first.rival().replay("answer")
			e.advance(time.Nanosecond)
			first.rival().claimNew()
		},
	},
	{
		conformance.Case{
			ID:     "retention-fence",
			Rule:   "The fence does not fall when an ID is claimed again after its retention.",
			Source: "Store.Claim",
		},
		func(e *env) {
			first, fence := e.raisedFence()
			first.retention = e.short()
			first.complete("answer")
			e.advance(first.retention)
			if got := first.rival().claimNew(); got.Fence < fence {
				e.Errorf("fence %d after %d", got.Fence, fence)
			}
		},
	},
	{
		conformance.Case{
			ID:     "purge-keeps",
			Rule:   "A purge deletes no record that is seen: no live attempt, even past its retention, no valid lapsed attempt, no response.",
			Source: "Purger",
			Needs:  []conformance.Need{conformance.Leases, conformance.Purger},
		},
		func(e *env) {
			live := e.caller()
			live.retention = e.short()
			live.claimNew()
			e.advance(2 * live.retention)
			lapsed, _ := e.lapsed()
			done := e.caller()
			done.claimNew()
			done.complete("answer")
			e.purge()

			live.rival().claim(store.InProgress)
			careful := lapsed.rival()
			careful.takeover = false
			careful.claim(store.Lapsed)
			done.rival().replay("answer")
		},
	},
	{
		conformance.Case{
			ID:     "purge-deletes",
			Rule:   "A purge deletes unseen records, up to its limit, and returns how many.",
			Source: "Purger",
			Needs:  []conformance.Need{conformance.Purger},
		},
		func(e *env) {
			kept := e.caller()
			kept.claimNew()
			kept.complete("kept")
			for range 5 {
				first := e.caller()
				first.retention = e.short()
				first.claimNew()
				first.complete("answer")
			}
			e.advance(4 * e.short()) // a store may purge a little late
			if deleted := e.purge(); deleted == 0 {
				e.Error("nothing was purged")
			}
			if deleted := e.purge(); deleted != 0 {
				e.Errorf("%d records were purged after all that were there", deleted)
			}
			kept.rival().replay("kept")
		},
	},
	{
		conformance.Case{
			ID:     "purge-limit",
			Rule:   "A limit outside 1 to 100,000 is ErrInvalid.",
			Source: "Purger",
			Needs:  []conformance.Need{conformance.Purger},
		},
		func(e *env) {
			ctx, cancel := e.call()
			defer cancel()
			for _, limit := range []int{-1, 0, 100_001} {
				_, err := ability[store.Purger](e.one).Purge(ctx, limit)
				e.wantInvalid("purge", err)
			}
			if _, err := ability[store.Purger](e.one).Purge(ctx, 100_000); err != nil {
				e.Errorf("purge: %v, want success", err)
			}
		},
	},
}

// purge purges until there is no more to do, and returns how many records were deleted.
func (e *env) purge() int {
	e.Helper()
	const limit = 2
	total := 0
	for {
		ctx, cancel := e.call()
		deleted, err := ability[store.Purger](e.two).Purge(ctx, limit)
		cancel()
		e.checkError("purge", err)
		if err != nil {
			e.Fatalf("purge: %v, want success", err)
		}
		if deleted < 0 || deleted > limit {
			e.Fatalf("purge deleted %d records, with a limit of %d", deleted, limit)
		}
		total += deleted
		if deleted < limit {
			return total
		}
	}
}
