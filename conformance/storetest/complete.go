package storetest

import (
	"github.com/reprise-go/reprise/conformance"
	"github.com/reprise-go/reprise/core/store"
)

var completeCases = []testCase{
	{
		conformance.Case{
			ID:     "complete-nothing",
			Rule:   "Completing an ID that was never claimed is ErrLeaseLost and creates nothing.",
			Source: "Store.Complete",
		},
		func(e *env) {
			nobody := e.caller()
			nobody.completeLost("of nobody's attempt")
			nobody.rival().claimNew()
		},
	},
	{
		conformance.Case{
			ID:     "complete-not-owner",
			Rule:   "Completing the running attempt of another owner is ErrLeaseLost and writes nothing.",
			Source: "Store.Complete, G3 fencing",
		},
		func(e *env) {
			first := e.caller()
			first.claimNew()
			first.rival().completeLost("of another owner")
			first.rival().claim(store.InProgress)
			first.complete("answer")
			first.rival().replay("answer")
		},
	},
	{
		conformance.Case{
			ID:     "complete-repeat",
			Rule:   "Completing again succeeds, because the reply may have been lost, and keeps the first payload.",
			Source: "Store, Repetition; Store.Complete",
		},
		func(e *env) {
			first := e.caller()
			first.claimNew()
			first.complete("first")
			first.complete("first")
			first.complete("second")
			first.rival().replay("first")
		},
	},
	{
		conformance.Case{
			ID:     "complete-once",
			Rule:   "A completed record keeps its owner and its payload: another owner's completion is ErrLeaseLost.",
			Source: "Store.Complete, G3 fencing",
		},
		func(e *env) {
			first := e.caller()
			first.claimNew()
			first.complete("answer")
			first.rival().completeLost("of another owner")
			first.rival().replay("answer")
			first.complete("answer")
		},
	},
	{
		conformance.Case{
			ID:     "complete-after-release",
			Rule:   "A released attempt cannot be completed: nothing is resurrected.",
			Source: "Store.Complete",
		},
		func(e *env) {
			first := e.caller()
			first.claimNew()
			first.release()
			first.completeLost("of a released attempt")
			first.rival().claimNew()
		},
	},
	{
		conformance.Case{
			ID:     "complete-after-release-and-claim",
			Rule:   "An attempt that was released cannot complete the attempt after it.",
			Source: "Store.Complete, G3 fencing",
		},
		func(e *env) {
			first := e.caller()
			first.claimNew()
			first.release()
			second := first.rival()
			second.claimNew()
			first.completeLost("of a released attempt")
			second.complete("second")
			first.replay("second")
		},
	},
	{
		conformance.Case{
			ID:     "complete-late",
			Rule:   "The owner of a lapsed attempt can complete it until another owner takes over.",
			Source: "Store.Complete",
			Needs:  []conformance.Need{conformance.Leases},
		},
		func(e *env) {
			first, _ := e.lapsed()
			first.complete("late")
			first.rival().replay("late")
		},
	},
	{
		conformance.Case{
			ID:     "complete-zombie",
			Rule:   "After a takeover the former owner cannot complete, neither while the new attempt runs nor afterwards.",
			Source: "Store.Complete, G3 fencing",
			Needs:  []conformance.Need{conformance.Leases},
		},
		func(e *env) {
			stale, current := e.takenOver()
			stale.completeLost("of a stale owner")
			stale.rival().claim(store.InProgress)
			current.complete("current")
			stale.completeLost("of a stale owner")
			stale.rival().replay("current")
		},
	},
	{
		conformance.Case{
			ID:     "complete-unseen",
			Rule:   "A lapsed attempt past its validity cannot be completed, purged or not.",
			Source: "Store, Records; Store.Complete",
			Needs:  []conformance.Need{conformance.Leases},
		},
		func(e *env) {
			first := e.unseen()
			first.completeLost("of an attempt that is not seen")
			first.rival().claimNew()
		},
	},
	{
		conformance.Case{
			ID:     "complete-after-retention",
			Rule:   "A completed record past its retention is unseen to its own owner too: repeating the completion does not restore it.",
			Source: "Store, Records; Store.Complete",
		},
		func(e *env) {
			first := e.caller()
			first.claimNew()
			brief := first
			brief.retention = e.short()
			brief.complete("answer")
			e.advance(brief.retention)
			first.completeLost("again, past its retention")
			first.rival().claimNew()
		},
	},
}
