package storetest

import (
	"github.com/reprise-go/reprise/conformance"
	reprise "github.com/reprise-go/reprise/core"
)

var completeCases = []testCase{
	{
		conformance.Case{
			ID:     "complete-nothing",
			Rule:   "To complete what was never claimed is ErrLeaseLost, and creates nothing.",
			Source: "Store.Complete",
		},
		func(r *rig) {
			nobody := r.party()
			nobody.completeLost("of nobody's attempt")
			nobody.rival().anew()
		},
	},
	{
		conformance.Case{
			ID:     "complete-not-owner",
			Rule:   "To complete the running attempt of another owner is ErrLeaseLost, and writes nothing.",
			Source: "Store.Complete, G3 fencing",
		},
		func(r *rig) {
			first := r.party()
			first.anew()
			first.rival().completeLost("of another owner")
			first.rival().claim(reprise.InProgress)
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
		func(r *rig) {
			first := r.party()
			first.anew()
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
		func(r *rig) {
			first := r.party()
			first.anew()
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
		func(r *rig) {
			first := r.party()
			first.anew()
			first.release()
			first.completeLost("of a released attempt")
			first.rival().anew()
		},
	},
	{
		conformance.Case{
			ID:     "complete-after-release-and-claim",
			Rule:   "An attempt that was released cannot be completed over the next one.",
			Source: "Store.Complete, G3 fencing",
		},
		func(r *rig) {
			first := r.party()
			first.anew()
			first.release()
			second := first.rival()
			second.anew()
			first.completeLost("of a released attempt")
			second.complete("second")
			first.replay("second")
		},
	},
	{
		conformance.Case{
			ID:     "complete-late",
			Rule:   "An attempt whose lease lapsed is completed by its owner while nobody took over.",
			Source: "Store.Complete",
			Needs:  []conformance.Need{conformance.Leases},
		},
		func(r *rig) {
			first, _ := r.lapsed()
			first.complete("late")
			first.rival().replay("late")
		},
	},
	{
		conformance.Case{
			ID:     "complete-zombie",
			Rule:   "An owner that was taken over cannot complete, neither while the new attempt runs nor after it.",
			Source: "Store.Complete, G3 fencing",
			Needs:  []conformance.Need{conformance.Leases},
		},
		func(r *rig) {
			zombie, current := r.takenOver()
			zombie.completeLost("of a zombie")
			zombie.rival().claim(reprise.InProgress)
			current.complete("current")
			zombie.completeLost("of a zombie")
			zombie.rival().replay("current")
		},
	},
	{
		conformance.Case{
			ID:     "complete-unseen",
			Rule:   "A lapsed attempt past its validity cannot be completed, purged or not.",
			Source: "Store, Records; Store.Complete",
			Needs:  []conformance.Need{conformance.Leases},
		},
		func(r *rig) {
			first := r.unseen()
			first.completeLost("of an attempt that is not seen")
			first.rival().anew()
		},
	},
	{
		conformance.Case{
			ID:     "complete-after-retention",
			Rule:   "A completion past its retention is unseen to its own owner too: repeating it does not bring it back.",
			Source: "Store, Records; Store.Complete",
		},
		func(r *rig) {
			first := r.party()
			first.anew()
			brief := first
			brief.retention = r.short()
			brief.complete("answer")
			r.advance(brief.retention)
			first.completeLost("again, past its retention")
			first.rival().anew()
		},
	},
}
