package storetest

import (
	"time"

	"github.com/reprise-go/reprise/conformance"

	reprise "github.com/reprise-go/reprise/core"
)

var claimCases = []testCase{
	{
		conformance.Case{
			ID:     "claim-first",
			Rule:   "The first claim of an ID is granted: attempt 1, with what is left of the lease.",
			Source: "Store.Claim",
		},
		func(r *rig) {
			got := r.party().anew()
			if got.Remaining <= 0 {
				r.Errorf("%v remain of a new lease of %v", got.Remaining, long)
			}
		},
	},
	{
		conformance.Case{
			ID:     "claim-in-progress",
			Rule:   "While an attempt runs, the claim of another owner answers InProgress, in every process and as often as it is asked.",
			Source: "Store.Claim, G1 exclusion",
		},
		func(r *rig) {
			first := r.party()
			first.anew()
			for range 3 {
				first.rival().claim(reprise.InProgress)
			}
			sameProcess := first.rival()
			sameProcess.store = first.store
			sameProcess.claim(reprise.InProgress)
			first.complete("answer")
		},
	},
	{
		conformance.Case{
			ID:     "claim-in-progress-remaining",
			Rule:   "InProgress tells what remains of the other owner's lease, not of the caller's.",
			Source: "ClaimResult.Remaining",
			Needs:  []conformance.Need{conformance.Leases},
		},
		func(r *rig) {
			first := r.party()
			first.lease = long / 2
			first.anew()
			if got := first.rival().claim(reprise.InProgress); got.Remaining > first.lease || got.Remaining < first.lease/2 {
				r.Errorf("%v remain of a lease of %v", got.Remaining, first.lease)
			}
		},
	},
	{
		conformance.Case{
			ID:     "claim-independent-ids",
			Rule:   "IDs that differ in one bit are two operations, and any bytes are an ID.",
			Source: "Store, interface comment",
		},
		func(r *rig) {
			for _, special := range []byte{0x00, '\n', '"', '\'', '%', '{', '}', '\\', 0x7f, 0x80, 0xff} {
				first := r.party()
				first.id[0], first.id[len(first.id)-1] = special, special
				second := first.rival()
				second.id[len(second.id)-1] ^= 1
				third := first.rival()
				third.id[0] ^= 0x20 // the other case of a letter

				first.anew()
				first.complete("first")
				second.anew()
				second.complete("second")
				third.anew()
				third.release()
				first.replay("first")
				second.replay("second")
			}
		},
	},
	{
		conformance.Case{
			ID:     "claim-mismatch-in-flight",
			Rule:   "The fingerprint is looked at before the progress: another request is a Mismatch even while the first one runs.",
			Source: "Store.Claim, G6 binding",
		},
		func(r *rig) {
			first := r.party()
			first.anew()
			first.stranger().claim(reprise.Mismatch)
		},
	},
	{
		conformance.Case{
			ID:     "claim-mismatch-completed",
			Rule:   "Another request with the key of a completed one is a Mismatch, and gets nothing of its answer.",
			Source: "Store.Claim, G6 binding",
		},
		func(r *rig) {
			first := r.party()
			first.anew()
			first.complete("answer")
			first.stranger().claim(reprise.Mismatch)
			own := first.stranger()
			own.owner = first.owner
			own.claim(reprise.Mismatch)
		},
	},
	{
		conformance.Case{
			ID:     "claim-fingerprint-bytes",
			Rule:   "Fingerprints are any 32 bytes, all zero included, and differ when any one of them does.",
			Source: "ClaimRequest.Fingerprint",
		},
		func(r *rig) {
			first := r.party()
			first.fingerprint = reprise.Fingerprint{}
			first.anew()
			first.complete("answer")
			for i := range first.fingerprint {
				other := first.rival()
				other.fingerprint[i] = 1
				other.claim(reprise.Mismatch)
			}
			first.rival().replay("answer")
		},
	},
	{
		conformance.Case{
			ID:     "claim-refused-changes-nothing",
			Rule:   "A claim that is not granted changes neither owner nor fingerprint nor lease.",
			Source: "Store.Claim",
		},
		func(r *rig) {
			first := r.party()
			granted := first.anew()
			refused := first.rival()
			refused.lease, refused.retention = r.short(), r.short()
			refused.claim(reprise.InProgress)
			if _, err := first.stranger().tryClaim(); err != nil { // Mismatch has cases of its own
				r.Fatalf("claim: %v", err)
			}
			r.advance(r.short())
			first.rival().claim(reprise.InProgress)
			refused.completeLost("of a claim that was refused")
			if again := first.claim(reprise.Claimed); again.Fence != granted.Fence {
				r.Errorf("fence %d became %d", granted.Fence, again.Fence)
			}
			first.complete("answer")
			first.rival().replay("answer")
		},
	},
	{
		conformance.Case{
			ID:     "claim-completed",
			Rule:   "Every claim of a completed ID replays its payload, to every owner in every process, its own included, and never runs it again.",
			Source: "Store.Claim, G2 replay equality",
		},
		func(r *rig) {
			first := r.party()
			first.anew()
			first.complete("answer")
			for range 3 {
				first.rival().replay("answer")
				first.replay("answer")
			}
		},
	},
	{
		conformance.Case{
			ID:     "claim-repeat",
			Rule:   "An owner that claims again, because the reply was lost, is granted the same attempt and fence, whatever Takeover says.",
			Source: "Store, Repetition",
		},
		func(r *rig) {
			first := r.party()
			granted := first.anew()
			for _, first.takeover = range []bool{true, false} {
				again := first.claim(reprise.Claimed)
				if again.Attempt != granted.Attempt || again.Fence != granted.Fence {
					r.Errorf("attempt %d with fence %d became attempt %d with fence %d", granted.Attempt, granted.Fence, again.Attempt, again.Fence)
				}
			}
			first.rival().claim(reprise.InProgress)
			first.complete("answer")
		},
	},
	{
		conformance.Case{
			ID:     "claim-repeat-anywhere",
			Rule:   "The repeated claim of an owner is granted through another connection too: the token is what counts.",
			Source: "Store, Repetition",
			Needs:  []conformance.Need{conformance.Leases},
		},
		func(r *rig) {
			first := r.party()
			granted := first.anew()
			first.store = r.two
			if again := first.claim(reprise.Claimed); again.Fence != granted.Fence {
				r.Errorf("fence %d became %d", granted.Fence, again.Fence)
			}
		},
	},
	{
		conformance.Case{
			ID:     "claim-repeat-starts-anew",
			Rule:   "The repeated claim of an owner starts its lease and its validity anew.",
			Source: "Store.Claim",
			Needs:  []conformance.Need{conformance.Leases},
		},
		func(r *rig) {
			r.unhurried(func(d time.Duration) bool {
				first := r.party()
				first.lease, first.retention = d, d
				start := r.now()
				first.anew()
				again := first
				again.lease, again.retention = long, long
				got, err := again.tryClaim()
				if r.now().Sub(start) >= d {
					return false
				}
				if err != nil || got.Outcome != reprise.Claimed {
					r.Fatalf("claim answered %v, %v; want it granted", got.Outcome, err)
				}
				if got.Remaining <= d {
					r.Errorf("%v remain after a claim with a lease of %v", got.Remaining, long)
				}
				r.advance(d)
				first.rival().claim(reprise.InProgress)
				return true
			})
		},
	},
}
