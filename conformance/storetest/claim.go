package storetest

import (
	"time"

	"github.com/reprise-go/reprise/conformance"
	"github.com/reprise-go/reprise/core/store"
)

var claimCases = []testCase{
	{
		conformance.Case{
			ID:     "claim-first",
			Rule:   "The first claim of an ID is granted as attempt 1, with the rest of its lease.",
			Source: "Store.Claim",
		},
		func(e *env) {
			got := e.caller().claimNew()
			if got.Remaining <= 0 {
				e.Errorf("%v remain of a new lease of %v", got.Remaining, long)
			}
		},
	},
	{
		conformance.Case{
			ID:     "claim-in-progress",
			Rule:   "While an attempt runs, every claim of another owner answers InProgress, in every process.",
			Source: "Store.Claim, G1 exclusion",
		},
		func(e *env) {
			first := e.caller()
			first.claimNew()
			for range 3 {
				first.rival().claim(store.InProgress)
			}
			sameProcess := first.rival()
			sameProcess.store = first.store
			sameProcess.claim(store.InProgress)
			first.complete("answer")
		},
	},
	{
		conformance.Case{
			ID:     "claim-in-progress-remaining",
			Rule:   "InProgress comes with the rest of the running attempt's lease, not of the caller's.",
			Source: "ClaimResult.Remaining",
			Needs:  []conformance.Need{conformance.Leases},
		},
		func(e *env) {
			first := e.caller()
			first.lease = long / 2
			first.claimNew()
			if got := first.rival().claim(store.InProgress); got.Remaining > first.lease || got.Remaining < first.lease/2 {
				e.Errorf("%v remain of a lease of %v", got.Remaining, first.lease)
			}
		},
	},
	{
		conformance.Case{
			ID:     "claim-scope",
			Rule:   "ClaimRequest.Scope is not an identity: it differs from process to process and changes no answer.",
			Source: "ClaimRequest.Scope",
		},
		func(e *env) {
			first := e.caller()
			first.scope = 1
			first.claimNew()
			first.scope = 2
			if got := first.claim(store.Claimed); got.Attempt != 1 {
				e.Errorf("attempt %d of a claim that was repeated, want 1", got.Attempt)
			}
			second := first.rival()
			for second.scope = range uint64(3) {
				second.claim(store.InProgress)
			}
			first.complete("answer")
			for second.scope = range uint64(3) {
				second.replay("answer")
			}
		},
	},
	{
		conformance.Case{
			ID:     "claim-independent-ids",
			Rule:   "IDs that differ in one bit are two operations, and any 32 bytes are an ID.",
			Source: "Store, interface comment",
		},
		func(e *env) {
			for _, special := range []byte{0x00, '\n', '"', '\'', '%', '{', '}', '\\', 0x7f, 0x80, 0xff} {
				first := e.caller()
				first.id[0], first.id[len(first.id)-1] = special, special
				second := first.rival()
				second.id[len(second.id)-1] ^= 1
				third := first.rival()
				third.id[0] ^= 0x20 // the other case of a letter

				first.claimNew()
				first.complete("first")
				second.claimNew()
				second.complete("second")
				third.claimNew()
				third.release()
				first.replay("first")
				second.replay("second")
			}
		},
	},
	{
		conformance.Case{
			ID:     "claim-mismatch-in-flight",
			Rule:   "The fingerprint is compared before the state: a different request is a Mismatch even while the first one runs.",
			Source: "Store.Claim, G6 binding",
		},
		func(e *env) {
			first := e.caller()
			first.claimNew()
			first.otherRequest().claim(store.Mismatch)
		},
	},
	{
		conformance.Case{
			ID:     "claim-mismatch-completed",
			Rule:   "A different request with the ID of a completed one is a Mismatch, and gets nothing of its payload.",
			Source: "Store.Claim, G6 binding",
		},
		func(e *env) {
			first := e.caller()
			first.claimNew()
			first.complete("answer")
			first.otherRequest().claim(store.Mismatch)
			own := first.otherRequest()
			own.owner = first.owner
			own.claim(store.Mismatch)
		},
	},
	{
		conformance.Case{
			ID:     "claim-fingerprint-bytes",
			Rule:   "A fingerprint is any 32 bytes, all zeros included, and every byte counts.",
			Source: "ClaimRequest.Fingerprint",
		},
		func(e *env) {
			first := e.caller()
			first.fingerprint = store.Fingerprint{}
			first.claimNew()
			first.complete("answer")
			for i := range first.fingerprint {
				other := first.rival()
				other.fingerprint[i] = 1
				other.claim(store.Mismatch)
			}
			first.rival().replay("answer")
		},
	},
	{
		conformance.Case{
			ID:     "claim-refused-changes-nothing",
			Rule:   "A claim that is not granted changes neither the owner nor the fingerprint nor the lease.",
			Source: "Store.Claim",
		},
		func(e *env) {
			first := e.caller()
			granted := first.claimNew()
			refused := first.rival()
			refused.lease, refused.retention = e.short(), e.short()
			refused.claim(store.InProgress)
			if _, err := first.otherRequest().tryClaim(); err != nil { // other cases cover Mismatch
				e.Fatalf("claim: %v", err)
			}
			e.advance(e.short())
			first.rival().claim(store.InProgress)
			refused.completeLost("of a claim that was refused")
			if again := first.claim(store.Claimed); again.Fence != granted.Fence {
				e.Errorf("fence %d became %d", granted.Fence, again.Fence)
			}
			first.complete("answer")
			first.rival().replay("answer")
		},
	},
	{
		conformance.Case{
			ID:     "claim-completed",
			Rule:   "Every claim of a completed ID answers Completed with its payload, to every owner in every process, the completing owner included.",
			Source: "Store.Claim, G2 replay equality",
		},
		func(e *env) {
			first := e.caller()
			first.claimNew()
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
			Rule:   "An owner that repeats its claim, because the reply was lost, is granted the same attempt and fence, with or without Takeover.",
			Source: "Store, Repetition",
		},
		func(e *env) {
			first := e.caller()
			granted := first.claimNew()
			for _, first.takeover = range []bool{true, false} {
				again := first.claim(store.Claimed)
				if again.Attempt != granted.Attempt || again.Fence != granted.Fence {
					e.Errorf("attempt %d with fence %d became attempt %d with fence %d", granted.Attempt, granted.Fence, again.Attempt, again.Fence)
				}
			}
			first.rival().claim(store.InProgress)
			first.complete("answer")
		},
	},
	{
		conformance.Case{
			ID:     "claim-repeat-anywhere",
			Rule:   "A repeated claim is granted through another connection too: only the owner token counts.",
			Source: "Store, Repetition",
			Needs:  []conformance.Need{conformance.Leases},
		},
		func(e *env) {
			first := e.caller()
			granted := first.claimNew()
			first.store = e.two
			if again := first.claim(store.Claimed); again.Fence != granted.Fence {
				e.Errorf("fence %d became %d", granted.Fence, again.Fence)
			}
		},
	},
	{
		conformance.Case{
			ID:     "claim-repeat-starts-anew",
			Rule:   "A repeated claim restarts its lease and its validity.",
			Source: "Store.Claim",
			Needs:  []conformance.Need{conformance.Leases},
		},
		func(e *env) {
			e.unhurried(func(d time.Duration) bool {
				first := e.caller()
				first.lease, first.retention = d, d
				start := e.now()
				first.claimNew()
				again := first
				again.lease, again.retention = long, long
				got, err := again.tryClaim()
				if e.now().Sub(start) >= d {
					return false
				}
				if err != nil || got.Outcome != store.Claimed {
					e.Fatalf("claim answered %v, %v; want it granted", got.Outcome, err)
				}
				if got.Remaining <= d {
					e.Errorf("%v remain after a claim with a lease of %v", got.Remaining, long)
				}
				e.advance(d)
				first.rival().claim(store.InProgress)
				return true
			})
		},
	},
}
