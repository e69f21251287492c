package storetest

import (
	"errors"

	"github.com/reprise-go/reprise/conformance"

	reprise "github.com/reprise-go/reprise/core"
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
		func(r *rig) {
			done := r.party()
			done.anew()
			done.complete("answer")
			r.fixture.Corrupt(r, done.id, how)
			done.corrupt()
			if r.fixture.Atomic {
				return // its attempts in progress have no record yet
			}
			running := r.party()
			running.anew()
			r.fixture.Corrupt(r, running.id, how)
			running.corrupt()
		},
	}
}

// corrupt demands that every operation on the party's record finds it corrupt and leaves it so.
func (p party) corrupt() {
	p.rig.Helper()
	want := func(what string, err error) {
		p.rig.Helper()
		if !errors.Is(err, reprise.ErrCorrupt) {
			p.rig.Errorf("%s of a corrupt record: error %v, want ErrCorrupt", what, err)
		}
	}
	for _, claimant := range []party{p, p.rival(), p.stranger()} {
		_, err := claimant.tryClaim()
		want("claim", err)
	}
	want("complete", p.tryComplete("over a corrupt record"))

	ctx, cancel := p.rig.call()
	defer cancel()
	if err := p.store.Release(ctx, p.id, p.owner); err != nil {
		want("release", err)
	}
	statuses, err := p.store.Renew(ctx, []reprise.RenewRequest{{ID: p.id, Owner: p.owner, Lease: p.lease}})
	if err != nil {
		want("renew", err)
	} else if len(statuses) != 1 || statuses[0] != reprise.RenewLost {
		p.rig.Errorf("renew of a corrupt record answered %v, want ErrCorrupt or %v", statuses, reprise.RenewLost)
	}
	_, err = p.rival().tryClaim()
	want("claim", err)
}
