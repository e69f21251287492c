package storetest

import (
	"errors"

	"github.com/reprise-go/reprise/conformance"
	"github.com/reprise-go/reprise/core/store"
)

// unreadableCases are about records that cannot be read.
var unreadableCases = []testCase{
	unreadableCase("unreadable-version", UnknownVersion),
	unreadableCase("unreadable-state", UnknownState),
	unreadableCase("unreadable-truncated", Truncated),
	unreadableCase("unreadable-type", WrongType),
	{
		conformance.Case{
			ID:     "resolve-unreadable",
			Rule:   "An operator can forget an unreadable record, whose ID is then new, by the fence that it is shown with, and no readable one as unreadable.",
			Source: "Inspector.Resolve, Record.Fence",
			Needs:  []conformance.Need{conformance.CorruptHook, conformance.Inspector},
		},
		func(e *env) {
			forget := store.Resolution{State: store.StateUnreadable, Forget: true}
			gone, done := e.caller(), e.caller()
			e.wantInvalid("resolve without a fence", done.resolve(forget))
			forget.Fence = 1
			gone.wantChanged("an ID that was never claimed", forget)
			done.claimNew()
			done.complete("answer")
			forget.Fence = done.inspect().Fence
			done.wantChanged("a completed record", forget)
			if !e.fixture.Atomic {
				live := e.caller()
				forget.Fence = live.claimNew().Fence
				live.wantChanged("a live attempt", forget)
				live.rival().claim(store.InProgress)
				lapsed, granted := e.lapsed()
				forget.Fence = granted.Fence
				lapsed.wantChanged("a lapsed attempt", forget)
				lapsed.completeOwn()
			}
			e.fixture.Corrupt(e, done.id, Truncated)
			forget.Fence = done.inspect().Fence
			if listed := done.listed(); forget.Fence == 0 || listed.Fence != forget.Fence {
				e.Errorf("inspected fence %d, listed %d", forget.Fence, listed.Fence)
			}
			for _, state := range []store.RecordState{store.StateLapsed, store.StateCompleted} {
				done.wantChanged("what was readable", store.Resolution{State: state, Fence: forget.Fence, Forget: true})
			}
			other := forget
			other.Fence++
			done.wantChanged("another fence", other)
			if _, err := done.rival().tryClaim(); !errors.Is(err, store.ErrCorrupt) {
				e.Errorf("claim of a corrupt record that was not forgotten: %v, want ErrCorrupt", err)
			}
			if err := done.resolve(forget); err != nil {
				e.Fatalf("forget: %v, want success", err)
			}
			done.wantChanged("what is forgotten", forget)
			next := done.otherRequest()
			next.claimNew()
			next.complete("another answer")
			e.fixture.Corrupt(e, next.id, Truncated)
			next.wantChanged("what became unreadable since", forget)
		},
	},
}

func unreadableCase(id string, how Corruption) testCase {
	return testCase{
		conformance.Case{
			ID: id,
			Rule: "A record that cannot be read (" + string(how) + ") is shown as unreadable, inspected and listed, whatever its age; " +
				"it is neither hidden nor an error of the listing.",
			Source: "StateUnreadable, Inspector",
			Needs:  []conformance.Need{conformance.CorruptHook, conformance.Inspector},
		},
		func(e *env) {
			good, bad := e.caller(), e.caller()
			good.claimNew()
			good.complete("answer")
			bad.claimNew()
			bad.complete("answer")
			e.fixture.Corrupt(e, bad.id, how)
			if got := bad.inspect(); got.ID != bad.id || got.State != store.StateUnreadable || got.Payload != nil {
				e.Errorf("inspected %+v", got)
			}
			if got := bad.listed(); got.State != store.StateUnreadable {
				e.Errorf("listed %+v", got)
			}
			only := store.Query{States: store.States(store.StateUnreadable), OlderThan: long, Limit: 10}
			e.wantIDs("of what is unreadable", e.listAll(only), []store.ID{bad.id})
			if got := good.listed(); got.State != store.StateCompleted {
				e.Errorf("listed %+v", got)
			}
		},
	}
}
