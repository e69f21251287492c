package storetest

import (
	"github.com/reprise-go/reprise/conformance"
	reprise "github.com/reprise-go/reprise/core"
)

// raisedFence returns the owner of a running attempt and its fence, which a takeover has raised where there are takeovers.
func (e *env) raisedFence() (current caller, fence uint64) {
	e.Helper()
	if e.fixture.Atomic {
		current = e.caller()
		return current, current.claimNew().Fence
	}
	lapsed, _ := e.lapsed()
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
		func(e *env) {
			first := e.caller()
			first.claimNew()
			first.release()
			second := first.otherRequest()
			second.takeover = false
			second.claimNew()
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
		func(e *env) {
			first := e.caller()
			first.release()
			first.claimNew()
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
		func(e *env) {
			first := e.caller()
			first.claimNew()
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
		func(e *env) {
			first := e.caller()
			first.claimNew()
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
		func(e *env) {
			first := e.caller()
			first.claimNew()
			first.release()
			second := first.rival()
			second.claimNew()
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
		func(e *env) {
			first, _ := e.lapsed()
			first.release()
			careful := first.otherRequest()
			careful.takeover = false
			careful.claimNew()
		},
	},
	{
		conformance.Case{
			ID:     "release-zombie",
			Rule:   "An owner that was taken over cannot release the new attempt.",
			Source: "Store.Release, G3 fencing",
			Needs:  []conformance.Need{conformance.Leases},
		},
		func(e *env) {
			stale, current := e.takenOver()
			stale.release()
			stale.rival().claim(reprise.InProgress)
			current.complete("current")
		},
	},
	{
		conformance.Case{
			ID:     "release-attempts",
			Rule:   "Released attempts do not count towards MaxAttempts.",
			Source: "Store.Claim, Store.Release",
		},
		func(e *env) {
			current := e.caller()
			for range 3 {
				current = current.rival()
				current.maxAttempts = 1
				current.claimNew()
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
		func(e *env) {
			first, fence := e.raisedFence()
			first.release()
			if got := first.rival().claimNew(); got.Fence < fence {
				e.Errorf("fence %d after %d", got.Fence, fence)
			}
		},
	},
}
