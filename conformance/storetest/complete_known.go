package storetest

import (
	"errors"

	"github.com/reprise-go/reprise/conformance"
	"github.com/reprise-go/reprise/core/store"
)

// completeKnownCases are about completions that carry knowledge about their claim.
var completeKnownCases = []testCase{
	{
		conformance.Case{
			ID:     "complete-known",
			Rule:   "A completion that has the fields of its claim ends as one without them: fenced, and with the fingerprint, label, attempt and fence of the record.",
			Source: "CompleteRequest.Attempt, G3 fencing, G6 binding",
			Needs:  []conformance.Need{conformance.Inspector},
		},
		func(e *env) {
			first := e.caller()
			first.label = "payments"
			granted := first.claimNew()
			stranger := first.rival()
			if err := stranger.tryCompleteAs(granted, "of a stranger"); !errors.Is(err, store.ErrLeaseLost) {
				e.Fatalf("complete of a stranger: error %v, want ErrLeaseLost", err)
			}
			if err := first.tryCompleteAs(granted, "answer"); err != nil {
				e.Fatalf("complete: %v, want success", err)
			}
			if err := first.tryCompleteAs(granted, "again"); err != nil {
				e.Fatalf("complete again: %v, want success", err)
			}
			first.rival().replay("answer")
			first.otherRequest().claim(store.Mismatch)
			got := first.inspect()
			if got.Label != "payments" || got.Attempt != 1 || !e.fixture.Atomic && got.Fence != granted.Fence || string(got.Payload) != "answer" {
				e.Errorf("inspected %+v after %+v", got, granted)
			}
		},
	},
	{
		conformance.Case{
			ID:     "complete-known-stale",
			Rule:   "A completion that has the fields of its claim writes nothing after a takeover, a release, or the end of the retention; after a lapse alone it succeeds.",
			Source: "CompleteRequest.Attempt, G3 fencing",
			Needs:  []conformance.Need{conformance.Leases},
		},
		func(e *env) {
			lost := func(what string, c caller, granted store.ClaimResult) {
				e.Helper()
				if err := c.tryCompleteAs(granted, "stale"); !errors.Is(err, store.ErrLeaseLost) {
					e.Errorf("complete %s: error %v, want ErrLeaseLost", what, err)
				}
			}
			zombie, granted := e.lapsed()
			second := zombie.rival()
			second.claim(store.Claimed)
			lost("after a takeover", zombie, granted)
			second.complete("answer")
			lost("after the next attempt's completion", zombie, granted)
			second.rival().replay("answer")

			released := e.caller()
			granted = released.claimNew()
			released.release()
			lost("after a release", released, granted)
			released.rival().claimNew()

			gone := e.caller()
			gone.lease, gone.retention = e.short(), e.short()
			granted = gone.claimNew()
			e.advance(e.short())
			lost("of what is not seen any more", gone, granted)
			gone.rival().claimNew()

			late, granted := e.lapsed()
			if err := late.tryCompleteAs(granted, "late"); err != nil {
				e.Errorf("complete of a lapsed attempt: %v, want success", err)
			}
			late.rival().replay("late")
		},
	},
}

// completeOwn completes an attempt that lapsed and was not taken over.
func (c caller) completeOwn() {
	c.env.Helper()
	c.complete("late")
	c.rival().replay("late")
}

// tryCompleteAs completes with the fields of the claim, as the engine does.
func (c caller) tryCompleteAs(granted store.ClaimResult, payload string) error {
	c.env.Helper()
	ctx, cancel := c.env.call()
	defer cancel()
	err := c.store.Complete(ctx, store.CompleteRequest{
		ID: c.id, Owner: c.owner, Payload: []byte(payload), Policy: c.policy(),
		Fingerprint: c.fingerprint, Description: c.description, Attempt: granted.Attempt, Fence: granted.Fence,
	})
	c.checkError("complete", err, payload)
	return err
}
