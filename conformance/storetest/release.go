package storetest

import (
	"github.com/reprise-go/reprise/conformance"
	"github.com/reprise-go/reprise/core/store"
)

// raisedFence returns the owner of a running attempt and its fence, which a takeover has
// raised where there are takeovers.
func (e *env) raisedFence() (current caller, fence uint64) {
	e.Helper()
	if e.fixture.Atomic {
		current = e.caller()
		return current, current.claimNew().Fence
	}
	lapsed, _ := e.lapsed()
	current = lapsed.rival()
	return current, current.claim(store.Claimed).Fence
}

var releaseCases = []testCase{
	{
		conformance.Case{
			ID:     "release-forgets",
			Rule:   "After a release the ID is new: every owner can claim it, for any request, as attempt 1.",
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
			Rule:   "Releasing an ID that has no record, or was released before, is not an error.",
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
			Rule:   "Releasing the attempt of another owner is not an error and changes nothing.",
			Source: "Store.Release, G3 fencing",
		},
		func(e *env) {
			first := e.caller()
			first.claimNew()
			first.rival().release()
			first.rival().claim(store.InProgress)
			first.complete("answer")
		},
	},
	{
		conformance.Case{
			ID:     "release-completed",
			Rule:   "A completed record cannot be released, not even by its owner.",
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
			Rule:   "A repeated release does not affect an attempt that began in between.",
			Source: "Store, Repetition; G3 fencing",
		},
		func(e *env) {
			first := e.caller()
			first.claimNew()
			first.release()
			second := first.rival()
			second.claimNew()
			first.release()
			first.claim(store.InProgress)
			second.complete("second")
		},
	},
	{
		conformance.Case{
			ID:     "release-lapsed",
			Rule:   "The owner of a lapsed attempt can release it until another owner takes over.",
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
			Rule:   "After a takeover the former owner cannot release the new attempt.",
			Source: "Store.Release, G3 fencing",
			Needs:  []conformance.Need{conformance.Leases},
		},
		func(e *env) {
			stale, current := e.takenOver()
			stale.release()
			stale.rival().claim(store.InProgress)
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
			Rule:   "The fence does not fall when a released ID is claimed again.",
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
