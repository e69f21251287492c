package storetest

import (
	"github.com/reprise-go/reprise/conformance"
	reprise "github.com/reprise-go/reprise/core"
)

// raised returns the owner of a running attempt and its fence, which a takeover has raised where there are takeovers.
func (r *rig) raised() (current party, fence uint64) {
	r.Helper()
	if r.fixture.Atomic {
		current = r.party()
		return current, current.anew().Fence
	}
	lapsed, _ := r.lapsed()
	current = lapsed.rival()
	return current, current.claim(reprise.Claimed).Fence
}

var releaseCases = []testCase{
	{
		conformance.Case{
			ID:     "release-forgets",
			Rule:   "After a release the key is new: to every owner, for every request, as attempt 1.",
			Source: "Store.Release",
		},
		func(r *rig) {
			first := r.party()
			first.anew()
			first.release()
			second := first.stranger()
			second.takeover = false
			second.anew()
			second.complete("second")
			second.rival().replay("second")
		},
	},
	{
		conformance.Case{
			ID:     "release-nothing",
			Rule:   "To release what is not there, or was released before, is no error.",
			Source: "Store.Release",
		},
		func(r *rig) {
			first := r.party()
			first.release()
			first.anew()
			first.release()
			first.release()
		},
	},
	{
		conformance.Case{
			ID:     "release-not-owner",
			Rule:   "To release the attempt of another owner is no error and changes nothing.",
			Source: "Store.Release, G3 fencing",
		},
		func(r *rig) {
			first := r.party()
			first.anew()
			first.rival().release()
			first.rival().claim(reprise.InProgress)
			first.complete("answer")
		},
	},
	{
		conformance.Case{
			ID:     "release-completed",
			Rule:   "What was completed cannot be released any more, not even by its owner.",
			Source: "Store.Release",
		},
		func(r *rig) {
			first := r.party()
			first.anew()
			first.complete("answer")
			first.release()
			first.rival().replay("answer")
		},
	},
	{
		conformance.Case{
			ID:     "release-repeat",
			Rule:   "A release that is repeated does not touch an attempt that began in between.",
			Source: "Store, Repetition; G3 fencing",
		},
		func(r *rig) {
			first := r.party()
			first.anew()
			first.release()
			second := first.rival()
			second.anew()
			first.release()
			first.claim(reprise.InProgress)
			second.complete("second")
		},
	},
	{
		conformance.Case{
			ID:     "release-lapsed",
			Rule:   "An attempt whose lease lapsed is released by its owner while nobody took over.",
			Source: "Store.Release",
			Needs:  []conformance.Need{conformance.Leases},
		},
		func(r *rig) {
			first, _ := r.lapsed()
			first.release()
			careful := first.stranger()
			careful.takeover = false
			careful.anew()
		},
	},
	{
		conformance.Case{
			ID:     "release-zombie",
			Rule:   "An owner that was taken over cannot release the new attempt.",
			Source: "Store.Release, G3 fencing",
			Needs:  []conformance.Need{conformance.Leases},
		},
		func(r *rig) {
			zombie, current := r.takenOver()
			zombie.release()
			zombie.rival().claim(reprise.InProgress)
			current.complete("current")
		},
	},
	{
		conformance.Case{
			ID:     "release-attempts",
			Rule:   "Released attempts do not count towards MaxAttempts.",
			Source: "Store.Claim, Store.Release",
		},
		func(r *rig) {
			current := r.party()
			for range 3 {
				current = current.rival()
				current.maxAttempts = 1
				current.anew()
				current.release()
			}
		},
	},
	{
		conformance.Case{
			ID:     "release-fence",
			Rule:   "The fence does not fall when a released key is claimed anew.",
			Source: "Store.Claim",
		},
		func(r *rig) {
			first, fence := r.raised()
			first.release()
			if got := first.rival().anew(); got.Fence < fence {
				r.Errorf("fence %d after %d", got.Fence, fence)
			}
		},
	},
}
