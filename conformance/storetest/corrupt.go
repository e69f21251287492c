package storetest

import (
	"errors"

	"github.com/reprise-go/reprise/conformance"
	"github.com/reprise-go/reprise/core/store"
)

var corruptCases = []testCase{
	corruptCase("corrupt-version", UnknownVersion),
	corruptCase("corrupt-state", UnknownState),
	corruptCase("corrupt-truncated", Truncated),
	corruptCase("corrupt-type", WrongType),
}

func corruptCase(id string, how Corruption) testCase {
	return testCase{
		conformance.Case{
			ID:     id,
			Rule:   "A record that cannot be read (" + string(how) + ") is ErrCorrupt, found before any write: not run as new, not replayed, not replaced.",
			Source: "Store, Errors",
			Needs:  []conformance.Need{conformance.CorruptHook},
		},
		func(e *env) {
			done := e.caller()
			done.claimNew()
			done.complete("answer")
			e.fixture.Corrupt(e, done.id, how)
			done.corrupt()
			if e.fixture.Atomic {
				return // its attempts in progress have no record yet
			}
			running := e.caller()
			running.claimNew()
			e.fixture.Corrupt(e, running.id, how)
			running.corrupt()
		},
	}
}

// corrupt demands that every operation on the caller's record finds it corrupt and leaves
// it so.
func (c caller) corrupt() {
	c.env.Helper()
	want := func(what string, err error) {
		c.env.Helper()
		if !errors.Is(err, store.ErrCorrupt) {
			c.env.Errorf("%s of a corrupt record: error %v, want ErrCorrupt", what, err)
		}
	}
	for _, claimant := range []caller{c, c.rival(), c.otherRequest()} {
		_, err := claimant.tryClaim()
		want("claim", err)
	}
	want("complete", c.tryComplete("over a corrupt record"))
	want("unknown", c.tryUnknown("over a corrupt record"))

	ctx, cancel := c.env.call()
	defer cancel()
	if err := c.store.Release(ctx, c.id, c.owner); err != nil {
		want("release", err)
	}
	statuses, err := c.store.Renew(ctx, []store.RenewRequest{{ID: c.id, Owner: c.owner, Lease: c.lease}})
	if err != nil {
		want("renew", err)
	} else if len(statuses) != 1 || statuses[0] != store.RenewLost {
		c.env.Errorf("renew of a corrupt record answered %v, want ErrCorrupt or %v", statuses, store.RenewLost)
	}
	_, err = c.rival().tryClaim()
	want("claim", err)
}
