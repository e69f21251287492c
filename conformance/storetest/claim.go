package storetest

import (
	"github.com/reprise-go/reprise/conformance"
	"github.com/reprise-go/reprise/core/store"
)

// The needs of cases.
var (
	inspector = []conformance.Need{conformance.Inspector}
)

var claimCases = []testCase{
	scenario("claim-first", nil, "Store.Claim",
		"The first claim of an ID is granted as attempt 1, with the rest of its lease.",
		a.claims(first.leaving(1, store.MaxDuration))),
	scenario("claim-in-progress", nil, "Store.Claim, G1 exclusion",
		"While an attempt runs, every claim of another owner answers InProgress, in every process.",
		a.claims(first), b.claims(inProgress), c.claims(inProgress), b.claims(inProgress), d.claims(inProgress), a.completes("answer")),
	scenario("claim-in-progress-remaining", nil, "ClaimResult.Remaining",
		"InProgress comes with the rest of the running attempt's lease, not of the caller's.",
		a.lease(span{plus: hour / 2}).claims(first), b.claims(inProgress.leaving(hour/4, hour/2))),
	scenario("claim-scope", nil, "ClaimRequest.Scope",
		"ClaimRequest.Scope is not an identity: it differs from process to process and changes no answer.",
		a.scope(1).claims(first), a.scope(2).claims(again),
		b.scope(0).claims(inProgress), b.scope(1).claims(inProgress), b.scope(2).claims(inProgress),
		a.completes("answer"),
		b.scope(0).claims(replay("answer")), b.scope(1).claims(replay("answer")), b.scope(2).claims(replay("answer"))),
	scenario("claim-independent-ids", nil, "Store, interface comment",
		"IDs that differ in one bit are two operations, and any 32 bytes are an ID.",
		each([]byte{0x00, '\n', '"', '\'', '%', '{', '}', '\\', 0x7f, 0x80, 0xff}, func(special byte) []step {
			b, c := b.of(1), c.of(2)
			return []step{
				a.id(special, special).claims(first), a.completes("first"),
				b.id(special, special^1).claims(first), b.completes("second"),
				c.id(special^0x20, special).claims(first), c.releases(), // the other case of a letter
				a.claims(replay("first")), b.claims(replay("second")),
			}
		})),
	scenario("claim-mismatch-in-flight", nil, "Store.Claim, G6 binding",
		"The fingerprint is compared before the state: a different request is a Mismatch even while the first one runs.",
		a.claims(first), x.claims(mismatch)),
	scenario("claim-mismatch-completed", nil, "Store.Claim, G6 binding",
		"A different request with the ID of a completed one is a Mismatch, and gets nothing of its payload.",
		a.claims(first), a.completes("answer"), x.claims(mismatch), a.print(store.Fingerprint{1}).claims(mismatch)),
	scenario("claim-fingerprint-bytes", nil, "ClaimRequest.Fingerprint",
		"A fingerprint is any 32 bytes, all zeros included, and every byte counts.",
		a.print(store.Fingerprint{}).claims(first), a.completes("answer"),
		repeated(len(store.Fingerprint{}), func(i int) []step {
			var other store.Fingerprint
			other[i] = 1
			return []step{b.print(other).claims(mismatch)}
		}),
		c.print(store.Fingerprint{}).claims(replay("answer"))),
	scenario("claim-refused-changes-nothing", nil, "Store.Claim",
		"A claim that is not granted changes neither the owner nor the fingerprint nor the lease.",
		a.claims(first), b.lease(short).keep(short).claims(inProgress), x.lease(short).isRefused(), // other cases cover Mismatch
		passes(short), c.claims(inProgress), b.completes("of a claim that was refused", lost), a.claims(again),
		a.completes("answer"), c.claims(replay("answer"))),
	scenario("claim-completed", nil, "Store.Claim, G2 replay equality",
		"Every claim of a completed ID answers Completed with its payload, to every owner in every process, the completing owner included.",
		a.claims(first), a.completes("answer"),
		b.claims(replay("answer")), a.claims(replay("answer")), c.claims(replay("answer")), d.claims(replay("answer")), a.claims(replay("answer"))),
	scenario("claim-repeat", nil, "Store, Repetition",
		"An owner that repeats its claim, because the reply was lost, is granted the same attempt and fence, with or without Takeover.",
		a.claims(first), a.claims(again), a.takeover(false).claims(again), b.claims(inProgress), a.completes("answer")),
	scenario("claim-repeat-anywhere", nil, "Store, Repetition",
		"A repeated claim is granted through another connection too: only the owner token counts.",
		a.claims(first), a.elsewhere().claims(again)),
	scenario("claim-repeat-starts-anew", nil, "Store.Claim",
		"A repeated claim restarts its lease and its validity.",
		within(short, a.lease(short).keep(short).claims(first), a.lease(long).keep(long).claims(again.leaving(hour/2, hour))),
		passes(short), b.claims(inProgress)),
}

var takeoverCases = []testCase{
	scenario("takeover", nil, "Store.Claim",
		"A takeover of a lapsed attempt gets the next attempt number, a higher fence and a lease of its own.",
		a.lapses(1), b.claims(attempt(2).leaving(1, hour)), c.claims(inProgress), b.completes("second"), c.claims(replay("second"))),
	scenario("takeover-not-early", nil, "G1 exclusion",
		"Nobody takes over before the lease ends.",
		within(short.times(4), a.lease(short.times(4)).claims(first), passes(short.times(3)), b.claims(inProgress))),
	scenario("takeover-at-the-end", []conformance.Need{conformance.ExactTime}, "Store, interface comment: at = expired",
		"A lease has ended at the instant of its end, and not before.",
		a.lease(short).claims(first), passes(short.justBefore()), b.claims(inProgress.leaving(1, 1)), passes(instant), c.claims(attempt(2))),
	scenario("takeover-refused", nil, "Store.Claim",
		"Without Takeover a lapsed attempt of another owner answers Lapsed, and stays as it is.",
		a.lapses(1), b.takeover(false).claims(lapsed), b.claims(lapsed), b.completes("of a claim that was refused", lost),
		a.completes("late"), b.claims(replay("late"))),
	scenario("takeover-max-attempts", nil, "ClaimRequest.MaxAttempts",
		"Takeovers stop at MaxAttempts; 0 is unlimited.",
		a.lapses(1), b.max(1).claims(lapsed), b.max(2).lapses(2), c.max(2).claims(lapsed), c.max(3).lapses(3), d.max(0).claims(attempt(4))),
	scenario("takeover-binding", nil, "G6 binding",
		"A lapsed record still belongs to its first request: a different request is a Mismatch, with or without Takeover.",
		a.lapses(1), x.claims(mismatch), x.takeover(false).claims(mismatch), b.claims(attempt(2)), x.claims(mismatch)),
	scenario("takeover-never-of-completed", nil, "Store.Claim",
		"A completed record has no lease that can lapse: it is replayed for its retention.",
		a.lease(short).claims(first), a.completes("answer"), passes(short), b.claims(replay("answer")), a.claims(replay("answer"))),
	scenario("takeover-own", nil, "Store.Claim",
		"An owner that claims its own lapsed attempt is granted it with Remaining 0 or less, with or without Takeover.",
		a.lapses(1), a.takeover(false).claims(again.leaving(-hour, 0)), a.takeover(true).claims(again.leaving(-hour, 0)),
		a.renews(store.Renewed), a.completes("answer")),
	scenario("takeover-own-after-rival", nil, "Store.Claim, G3 fencing",
		"After a takeover the former owner is no longer an owner: its claim is answered like any other.",
		a.lapses(1), b.claims(attempt(2)), a.claims(inProgress), b.completes("current"), a.claims(replay("current"))),
	scenario("takeover-validity", nil, "G7 horizon",
		"The retention of a record that is never completed counts from the last takeover.",
		a.lapses(1), b.keep(short).lapses(2), x.claims(first)),
}
