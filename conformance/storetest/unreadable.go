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
			Rule:   "With fence 0 an operator forgets an unreadable record, whose ID is then new, and no readable one; an answer needs a fence.",
			Source: "Inspector.Resolve, Resolution.Fence",
			Needs:  []conformance.Need{conformance.CorruptHook, conformance.Inspector},
		},
		func(e *env) {
			forget := store.Resolution{Forget: true}
			gone, done := e.caller(), e.caller()
			gone.wantChanged("an ID that was never claimed", forget)
			done.claimNew()
			done.complete("answer")
			done.wantChanged("a completed record", forget)
			if !e.fixture.Atomic {
				live := e.caller()
				live.claimNew()
				live.wantChanged("a live attempt", forget)
				live.rival().claim(store.InProgress)
				lapsed, _ := e.lapsed()
				lapsed.wantChanged("a lapsed attempt", forget)
				lapsed.completeOwn()
			}
			e.fixture.Corrupt(e, done.id, Truncated)
			e.wantInvalid("resolve with an answer and no fence", done.resolve(store.Resolution{Payload: []byte("by hand"), Retention: long}))
			if err := done.resolve(store.Resolution{Fence: 1, Forget: true}); !errors.Is(err, store.ErrRecordChanged) && !errors.Is(err, store.ErrCorrupt) {
				e.Errorf("resolve of an unreadable record with a fence: error %v, want ErrRecordChanged or ErrCorrupt", err)
			}
			if _, err := done.rival().tryClaim(); !errors.Is(err, store.ErrCorrupt) {
				e.Errorf("claim of a corrupt record that was not forgotten: %v, want ErrCorrupt", err)
			}
			if err := done.resolve(forget); err != nil {
				e.Fatalf("forget: %v, want success", err)
			}
			done.otherRequest().claimNew()
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
