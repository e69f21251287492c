package storetest

import (
	"time"

	"github.com/reprise-go/reprise/conformance"
	"github.com/reprise-go/reprise/core/store"
)

// forgetCases are about operators who forget a result.
var forgetCases = []testCase{
	{
		conformance.Case{
			ID:     "resolve-forget-completed",
			Rule:   "An operator can forget a completed record, also an expired one: the ID is then new for every request, and the former owner has lost it.",
			Source: "Inspector.Resolve, Resolution.State",
			Needs:  []conformance.Need{conformance.Inspector},
		},
		func(e *env) {
			for _, horizon := range []time.Duration{0, long} {
				e.forgetCompleted(horizon, false)
			}
			e.forgetCompleted(long, true)
		},
	},
	{
		conformance.Case{
			ID:     "resolve-forget-seen",
			Rule:   "A result is forgotten only by its fence, by an operator who saw it: ErrRecordChanged. It is never replaced: ErrInvalid.",
			Source: "Inspector.Resolve, Resolution",
			Needs:  []conformance.Need{conformance.Inspector},
		},
		func(e *env) {
			e.caller().wantChanged("an ID that was never claimed", store.Resolution{State: store.StateCompleted, Fence: 1, Forget: true})

			done := e.caller()
			done.horizon = long
			done.claimNew()
			done.complete("answer")
			fence := done.inspect().Fence
			done.wantChanged("another fence", store.Resolution{State: store.StateCompleted, Fence: fence + 1, Forget: true})
			for _, state := range []store.RecordState{0, store.StateLapsed, store.StateUnknown, store.StateUnreadable} {
				done.wantChanged("what was in another state", store.Resolution{State: state, Fence: fence, Forget: true})
			}
			for _, r := range []store.Resolution{
				{State: store.StateCompleted, Forget: true},
				{State: store.StateRunning, Fence: fence, Forget: true},
				{State: store.StateCompleted, Fence: fence, Payload: []byte("by hand"), Retention: long},
				{State: store.StateExpired, Fence: fence, Payload: []byte("by hand"), Retention: long},
				{State: store.StateUnreadable, Fence: fence, Payload: []byte("by hand"), Retention: long},
			} {
				e.wantInvalid("resolve", done.resolve(r))
			}
			done.rival().replay("answer")
		},
	},
	{
		conformance.Case{
			ID:     "resolve-forget-attempt",
			Rule:   "Who forgets a result forgets no attempt, neither a live one nor one that lapsed; nor the attempt that came after a result was forgotten. Who resolves a lapse does not resolve what was said of it since.",
			Source: "Inspector.Resolve, Resolution.State",
			Needs:  []conformance.Need{conformance.Leases, conformance.Inspector},
		},
		func(e *env) {
			result := func(fence uint64) store.Resolution {
				return store.Resolution{State: store.StateCompleted, Fence: fence, Forget: true}
			}
			live := e.caller()
			live.wantChanged("a live attempt", result(live.claimNew().Fence))
			live.rival().claim(store.InProgress)
			live.complete("answer")

			lapsed, granted := e.lapsed()
			lapsed.wantChanged("a lapsed attempt", result(granted.Fence))
			lapsed.completeOwn()

			late, granted := e.lapsed()
			late.unknown(unknownReason)
			for _, forget := range []bool{false, true} {
				late.wantChanged("an attempt that said since that its outcome is unknown",
					store.Resolution{State: store.StateLapsed, Fence: granted.Fence, Forget: forget, Payload: []byte("by hand"), Retention: long})
			}

			again := e.caller()
			again.claimNew()
			again.complete("answer")
			seen := result(again.inspect().Fence)
			if err := again.resolve(seen); err != nil {
				e.Fatalf("resolve: %v, want success", err)
			}
			next := again.rival()
			next.claimNew()
			again.wantChanged("the next attempt", seen)
			next.complete("another answer")
			again.wantChanged("the result of the next attempt", seen)
			again.rival().replay("another answer")
		},
	},
}

// forgetCompleted forgets a result and demands that nothing of it is left.
func (e *env) forgetCompleted(horizon time.Duration, expired bool) {
	e.Helper()
	first := e.caller()
	first.horizon = horizon
	want := store.StateCompleted
	if expired {
		first.retention, want = e.short(), store.StateExpired
	}
	first.claimNew()
	first.complete("answer")
	if expired {
		e.advance(first.retention)
	}
	seen := first.inspect()
	if seen.State != want {
		e.Fatalf("inspected %+v, want %v", seen, want)
	}
	if err := first.resolve(store.Resolution{State: seen.State, Fence: seen.Fence, Forget: true}); err != nil {
		e.Fatalf("resolve of %v with a horizon of %v: %v, want success", seen.State, horizon, err)
	}
	first.wantNotFound()
	first.completeLost("late")
	first.release()
	if !e.fixture.Atomic {
		first.renew(store.RenewLost)
	}
	first.wantNotFound()

	next := first.otherRequest()
	if got := next.claimNew(); got.Fence < seen.Fence {
		e.Errorf("fence %d after %d", got.Fence, seen.Fence)
	}
	next.complete("another answer")
	retry := next.rival()
	retry.replay("another answer")
}
