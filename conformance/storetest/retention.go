package storetest

import (
	"time"

	"github.com/reprise-go/reprise/conformance"

	reprise "github.com/reprise-go/reprise/core"
)

// unseen returns the owner of an attempt that lapsed and is past its validity.
func (r *rig) unseen() party {
	r.Helper()
	first := r.party()
	brief := first
	brief.lease, brief.retention = r.short(), r.short()
	brief.anew()
	r.advance(r.short())
	return first
}

var retentionCases = []testCase{
	{
		conformance.Case{
			ID:     "retention-unseen",
			Rule:   "A lapsed attempt past its validity is unseen: the next claim finds nothing, of any request and without Takeover.",
			Source: "Store, Records; G7 horizon",
			Needs:  []conformance.Need{conformance.Leases},
		},
		func(r *rig) {
			careful := r.unseen().stranger()
			careful.takeover = false
			careful.maxAttempts = 1
			careful.anew()
		},
	},
	{
		conformance.Case{
			ID:     "retention-unseen-own",
			Rule:   "A lapsed attempt past its validity is unseen to its owner too: its claim is granted as a new one.",
			Source: "Store, Records",
			Needs:  []conformance.Need{conformance.Leases},
		},
		func(r *rig) {
			first := r.unseen()
			if got := first.anew(); got.Remaining <= 0 {
				r.Errorf("%v remain of a new lease", got.Remaining)
			}
			first.rival().claim(reprise.InProgress)
		},
	},
	{
		conformance.Case{
			ID:     "retention-unseen-release",
			Rule:   "Releasing an attempt that is unseen is no error, and does not touch the one that began after it.",
			Source: "Store, Records; Store.Release",
			Needs:  []conformance.Need{conformance.Leases},
		},
		func(r *rig) {
			first := r.unseen()
			first.release()
			second := first.rival()
			second.anew()
			first.release()
			first.claim(reprise.InProgress)
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
		func(r *rig) {
			first := r.party()
			brief := first
			brief.retention = r.short()
			brief.anew()
			r.advance(2 * brief.retention)
			first.rival().claim(reprise.InProgress)
			first.stranger().claim(reprise.Mismatch)
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
		func(r *rig) {
			r.unhurried(func(d time.Duration) bool {
				first := r.party()
				brief := first
				brief.lease, brief.retention = d, d
				start := r.now()
				brief.anew()
				status := r.renewAll(first)[0]
				if r.now().Sub(start) >= d {
					return false
				}
				if status != reprise.Renewed {
					r.Fatalf("renew answered %v, want %v", status, reprise.Renewed)
				}
				r.advance(2 * d)
				first.rival().claim(reprise.InProgress)
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
		func(r *rig) {
			r.unhurried(func(d time.Duration) bool {
				first := r.party()
				first.retention = d
				first.anew()
				r.advance(d)
				start := r.now()
				first.complete("answer")
				got, err := first.rival().tryClaim()
				if r.now().Sub(start) >= d {
					return false
				}
				if err != nil || got.Outcome != reprise.Completed {
					r.Fatalf("claim answered %v, %v within the retention, want Completed", got.Outcome, err)
				}
				return true
			})
		},
	},
	{
		conformance.Case{
			ID:     "retention-ends",
			Rule:   "When the retention of a response ends, the key is new; a longer retention of the claim does not hold it.",
			Source: "Store.Complete, G7 horizon",
		},
		func(r *rig) {
			first := r.party()
			first.anew()
			brief := first
			brief.retention = r.short()
			brief.complete("answer")
			r.advance(brief.retention)
			second := first.stranger()
			second.takeover = false
			second.anew()
			second.complete("second")
			second.rival().replay("second")
		},
	},
	{
		conformance.Case{
			ID:     "retention-at-the-end",
			Rule:   "At the instant at which a retention ends it has ended, and not a moment before.",
			Source: "Store, interface comment: at = expired",
			Needs:  []conformance.Need{conformance.ExactTime},
		},
		func(r *rig) {
			first := r.party()
			first.anew()
			first.retention = r.short()
			first.complete("answer")
			r.advance(r.short() - time.Nanosecond)
			first.rival().replay("answer")
			r.advance(time.Nanosecond)
			first.rival().anew()
		},
	},
	{
		conformance.Case{
			ID:     "retention-fence",
			Rule:   "The fence does not fall when a key is claimed anew after its retention.",
			Source: "Store.Claim",
		},
		func(r *rig) {
			first, fence := r.raised()
			first.retention = r.short()
			first.complete("answer")
			r.advance(first.retention)
			if got := first.rival().anew(); got.Fence < fence {
				r.Errorf("fence %d after %d", got.Fence, fence)
			}
		},
	},
	{
		conformance.Case{
			ID:     "purge-keeps",
			Rule:   "A purge deletes nothing that is seen: no live attempt, also past its retention, no lapsed one that is valid, no response.",
			Source: "Purger",
			Needs:  []conformance.Need{conformance.Leases, conformance.Purger},
		},
		func(r *rig) {
			live := r.party()
			live.retention = r.short()
			live.anew()
			r.advance(2 * live.retention)
			lapsed, _ := r.lapsed()
			done := r.party()
			done.anew()
			done.complete("answer")
			r.purge()

			live.rival().claim(reprise.InProgress)
			careful := lapsed.rival()
			careful.takeover = false
			careful.claim(reprise.Lapsed)
			done.rival().replay("answer")
		},
	},
	{
		conformance.Case{
			ID:     "purge-deletes",
			Rule:   "A purge deletes what is not seen any more, up to its limit, and says how much it was.",
			Source: "Purger",
			Needs:  []conformance.Need{conformance.Purger},
		},
		func(r *rig) {
			kept := r.party()
			kept.anew()
			kept.complete("kept")
			for range 5 {
				first := r.party()
				first.retention = r.short()
				first.anew()
				first.complete("answer")
			}
			r.advance(4 * r.short()) // a store may purge a little late
			if deleted := r.purge(); deleted == 0 {
				r.Error("nothing was purged")
			}
			if deleted := r.purge(); deleted != 0 {
				r.Errorf("%d records were purged after all that were there", deleted)
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
		func(r *rig) {
			ctx, cancel := r.call()
			defer cancel()
			for _, limit := range []int{-1, 0, 100_001} {
				_, err := ability[reprise.Purger](r.one).Purge(ctx, limit)
				r.wantInvalid("purge", err)
			}
			if _, err := ability[reprise.Purger](r.one).Purge(ctx, 100_000); err != nil {
				r.Errorf("purge: %v, want success", err)
			}
		},
	},
}

// purge purges until there is no more to do, and returns how many records were deleted.
func (r *rig) purge() int {
	r.Helper()
	const limit = 2
	total := 0
	for {
		ctx, cancel := r.call()
		deleted, err := ability[reprise.Purger](r.two).Purge(ctx, limit)
		cancel()
		r.checkError("purge", err)
		if err != nil {
			r.Fatalf("purge: %v, want success", err)
		}
		if deleted < 0 || deleted > limit {
			r.Fatalf("purge deleted %d records, with a limit of %d", deleted, limit)
		}
		total += deleted
		if deleted < limit {
			return total
		}
	}
}
