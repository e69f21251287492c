package storetest

import (
	"strings"

	"github.com/reprise-go/reprise/conformance"
	"github.com/reprise-go/reprise/core/store"
)

const bankTimedOut = "the bank timed out"

// unprintable is text that no label, description or reason may have.
var unprintable = []string{"caf\u00e9", "a\nb", "\x00", "\x7f"}

// unknownCases are about attempts that ended without a result that can be told.
var unknownCases = []testCase{
	scenario("unknown-claim", nil, "Store.Unknown, Store.Claim",
		"An attempt whose outcome is unknown answers Lapsed at once, whatever policy it was claimed with and whatever a retry allows.",
		a.claims(first), a.saysUnknown(bankTimedOut), b.claims(lapsed), c.strict(true).claims(lapsed), d.waiting().claims(lapsed)),
	scenario("unknown-claim-own", nil, "Store.Unknown, Store.Claim",
		"The owner that said that the outcome is unknown gets Lapsed as any other.",
		a.claims(first), a.saysUnknown(bankTimedOut), a.claims(lapsed), a.takeover(false).claims(lapsed)),
	scenario("unknown-mismatch", nil, "Store.Unknown, G6 binding",
		"An unknown outcome is bound to its request: another one is a mismatch.",
		a.claims(first), a.saysUnknown(bankTimedOut), x.claims(mismatch)),
	scenario("unknown-ends", nil, "Store.Unknown, G3 fencing",
		"After Unknown the owner can neither renew, complete nor release: RenewLost, ErrLeaseLost, and nothing.",
		a.claims(first), a.saysUnknown(bankTimedOut), a.renews(store.RenewLost), b.claims(lapsed),
		a.completes("after all", lost), b.claims(lapsed), a.releases(), b.claims(lapsed)),
	scenario("unknown-not-owner", nil, "Store.Unknown, G3 fencing",
		"Unknown by an owner that is not the record's is ErrLeaseLost and changes nothing.",
		a.claims(first), b.saysUnknown("of another", lost), c.claims(inProgress), a.completes("answer"), c.claims(replay("answer"))),
	scenario("unknown-zombie", nil, "Store.Unknown, G3 fencing",
		"After a takeover the former owner's Unknown is ErrLeaseLost, and the new attempt goes on.",
		a.lapses(1), b.claims(attempt(2)), a.saysUnknown("of a stale owner", lost), c.claims(inProgress), b.completes("current")),
	scenario("unknown-completed", nil, "Store.Unknown",
		"Unknown after a completion is ErrLeaseLost, and the record stays completed.",
		a.claims(first), a.completes("answer"), a.saysUnknown(bankTimedOut, lost), b.claims(replay("answer"))),
	scenario("unknown-nothing", nil, "Store.Unknown",
		"Unknown for an ID that was never claimed, or was released, is ErrLeaseLost and creates nothing.",
		a.saysUnknown(bankTimedOut, lost), a.claims(first), a.releases(), a.saysUnknown(bankTimedOut, lost), b.claims(first)),
	scenario("unknown-repeat", inspector, "Store.Unknown; Store, Repetition",
		"A repeated Unknown succeeds and keeps the reason of the first call.",
		a.claims(first), a.saysUnknown(bankTimedOut), a.elsewhere().saysUnknown("another reason"), a.claims(lapsed), a.shows(unknown)),
	scenario("unknown-late", nil, "Store.Unknown",
		"An owner whose lease has run out can still say that the outcome is unknown, until another owner takes over.",
		a.lapses(1), a.saysUnknown(bankTimedOut), b.claims(lapsed)),
	scenario("unknown-validity", nil, "Store.Unknown; Policy",
		"An unknown outcome is seen for its retention and horizon, counted from Unknown; then the ID is new.",
		within(short.times(6), a.keep(short.times(2)).horizon(short.times(2)).claims(first), passes(short.times(2)),
			a.saysUnknown(bankTimedOut), passes(short.times(3)), b.claims(lapsed)),
		passes(short), x.claims(first)),
	scenario("unknown-inspected", inspector, "StateUnknown, Record.Reason",
		"An operator sees an unknown outcome with its reason, as AtMostOnce and without a lease; a listing tells it from a lapse.",
		a.label("unknown-inspected").horizon(long).claims(first), a.saysUnknown(strings.Repeat("~ ", store.MaxReason/2)+"."),
		a.shows(unknown, validFor(3*hour/2, 2*hour)), a.isListed(unknown),
		lists(store.Query{Label: "unknown-inspected", States: store.States(unknown)}, a),
		lists(store.Query{Label: "unknown-inspected", States: store.States(store.StateLapsed, store.StateRunning)})),
	scenario("unknown-resolve", inspector, "Inspector.Resolve",
		"An operator resolves an unknown outcome as one that lapsed, by its fence: with a result, or by forgetting it.",
		each([]verdict{byHand(long), forget(0)}, func(v verdict) []step {
			return []step{a.claims(first), a.saysUnknown(bankTimedOut), a.shows(unknown), a.isResolved(v.later(), changed), a.isResolved(v)}
		}),
		a.claims(first), a.saysUnknown(bankTimedOut), a.shows(unknown), a.isResolved(byHand(long)), b.claims(replay("by hand")),
		a.completes("of the former owner", lost), a.saysUnknown(bankTimedOut, lost), a.shows(completed),
		a.of(1).claims(first), a.of(1).saysUnknown(bankTimedOut), a.of(1).shows(unknown), a.of(1).isResolved(forget(0)), x.of(1).claims(first)),
	scenario("unknown-watch", []conformance.Need{conformance.Waiter}, "Waiter",
		"A watch of an ID wakes when its outcome becomes unknown in another process.",
		a.claims(first), b.waiting().claims(inProgress), a.wakes(a.saysUnknown(bankTimedOut))),
	scenario("unknown-invalid", nil, "UnknownRequest.Validate",
		"A reason that is empty, too long or not printable ASCII is ErrInvalid, and the attempt goes on.",
		a.claims(first), a.saysUnknown("", invalid), a.saysUnknown(strings.Repeat("x", store.MaxReason+1), invalid),
		repeated(len(unprintable), func(i int) []step { return []step{a.saysUnknown(unprintable[i], invalid)} }),
		b.owner(store.Owner{}).saysUnknown(bankTimedOut, invalid), c.claims(inProgress), a.completes("answer")),
}
