package storetest

import "github.com/reprise-go/reprise/core/store"

var resolveCases = []testCase{
	scenario("resolve-keep", inspector, "Inspector.Resolve, Resolution",
		"An operator can complete a lapsed attempt with a payload, for the retention that the operator gives.",
		a.lapses(1), a.isResolved(byHand(long.times(2))), b.claims(replay("by hand")), x.claims(mismatch), a.shows(completed, validFor(3*hour/2, 2*hour))),
	scenario("resolve-forget", inspector, "Inspector.Resolve, Resolution",
		"An operator can release a lapsed attempt: the ID is then new.",
		a.lapses(1), a.isResolved(forget(0)), x.claims(first)),
	scenario("resolve-owner", inspector, "Inspector.Resolve, G3 fencing",
		"After an operator resolved an attempt, its former owner gets ErrLeaseLost and changes nothing.",
		a.lapses(1), a.isResolved(byHand(long)), a.completes("of the former owner", lost), a.renews(store.RenewLost), a.releases(), a.claims(replay("by hand"))),
	scenario("resolve-changed", inspector, "Inspector.Resolve",
		"A record that is live, completed, gone, or has another fence than the inspected one is not resolved: ErrRecordChanged.",
		each([]verdict{forget(0), byHand(long)}, func(v verdict) []step {
			live, late := a.of(1), a.of(2)
			return []step{
				a.isResolved(v, changed),
				live.claims(first), live.isResolved(v, changed), b.of(1).claims(inProgress),
				live.completes("answer"), live.isResolved(v, changed), b.of(1).claims(replay("answer")),
				late.lapses(1), late.isResolved(v.later(), changed), b.of(2).takeover(false).claims(lapsed),
				c.of(2).lapses(2), late.isResolved(v, changed), b.of(2).claims(lapsed), // with the fence of an earlier attempt
			}
		})),
	scenario("resolve-horizon", inspector, "Inspector.Resolve; Policy.Horizon",
		"What an operator resolved keeps the horizon of its policy, counted from the end of the retention that the operator gave.",
		a.keep(short).horizon(long).lapses(1), a.isResolved(byHand(long)), b.claims(replay("by hand")), a.shows(completed, validFor(3*hour/2, 2*hour))),
	scenario("resolve-remembers", inspector, "Inspector.Resolve",
		"What an operator resolved is seen for at least as long as it would have been otherwise, also where its payload ends earlier.",
		a.lapses(1), a.isResolved(byHand(short)), passes(short), b.claims(expired), x.claims(mismatch)),
}

// forgetCases are about operators who forget a result.
var forgetCases = []testCase{
	scenario("resolve-forget-completed", inspector, "Inspector.Resolve, Resolution.State",
		"An operator can forget a completed record, also an expired one: the ID is then new for every request, and the former owner has lost it.",
		forgetsResult(a.claims(first), completed),
		forgetsResult(a.horizon(long).claims(first), completed),
		forgetsResult(a.keep(short).horizon(long).claims(first), store.StateExpired, passes(short))),
	scenario("resolve-forget-seen", inspector, "Inspector.Resolve, Resolution",
		"A result is forgotten only by its fence, by an operator who saw it: ErrRecordChanged. It is never replaced: ErrInvalid.",
		a.isResolved(forget(completed), changed),
		a.horizon(long).claims(first), a.completes("answer"), a.shows(completed), a.isResolved(forget(completed).later(), changed),
		a.isResolved(forget(0), changed), a.isResolved(forget(store.StateLapsed), changed),
		a.isResolved(forget(unknown), changed), a.isResolved(forget(unreadable), changed),
		a.isResolved(forget(completed).unseen(), invalid), a.isResolved(forget(store.StateRunning), invalid),
		a.isResolved(byHand(long).as(completed), invalid), a.isResolved(byHand(long).as(store.StateExpired), invalid),
		a.isResolved(byHand(long).as(unreadable), invalid), b.claims(replay("answer"))),
	scenario("resolve-forget-attempt", inspector, "Inspector.Resolve, Resolution.State",
		"Who forgets a result forgets no attempt, neither a live one nor one that lapsed; nor the attempt that came after a result was forgotten. "+
			"Who resolves a lapse does not resolve what was said of it since.",
		a.claims(first), a.isResolved(forget(completed), changed), b.claims(inProgress), a.completes("answer"),
		a.of(1).lapses(1), a.of(1).isResolved(forget(completed), changed), a.of(1).completes("late"), b.of(1).claims(replay("late")),
		a.of(2).lapses(1), a.of(2).saysUnknown(bankTimedOut),
		a.of(2).isResolved(forget(store.StateLapsed), changed), a.of(2).isResolved(byHand(long).as(store.StateLapsed), changed),
		a.of(3).claims(first), a.of(3).completes("answer"), a.of(3).shows(completed), a.of(3).isResolved(forget(completed)),
		b.of(3).claims(first), a.of(3).isResolved(forget(completed), changed),
		b.of(3).completes("another answer"), a.of(3).isResolved(forget(completed), changed), c.of(3).claims(replay("another answer"))),
}

// forgetsResult forgets a result in a state and demands that nothing of it is left.
func forgetsResult(claim step, state store.RecordState, until ...step) step {
	return each([]store.RecordState{state}, func(store.RecordState) []step {
		steps := append([]step{claim, a.completes("answer")}, until...)
		return append(steps,
			a.shows(state), a.isResolved(forget(state)), a.isAbsent(), a.keep(long).completes("late", lost), a.releases(), a.renews(store.RenewLost), a.isAbsent(),
			x.claims(first), x.completes("another answer"), y.claims(replay("another answer")))
	})
}
