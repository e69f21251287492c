package storetest

import (
	"fmt"

	"github.com/reprise-go/reprise/conformance"
	"github.com/reprise-go/reprise/core/store"
)

// corruptCases are about records that cannot be read.
var corruptCases = []testCase{
	corruptCase("corrupt-version", UnknownVersion),
	corruptCase("corrupt-state", UnknownState),
	corruptCase("corrupt-truncated", Truncated),
	corruptCase("corrupt-type", WrongType),
}

func corruptCase(id string, how Corruption) testCase {
	return scenario(id, []conformance.Need{conformance.CorruptHook}, "Store, Errors",
		"A record that cannot be read ("+string(how)+") is ErrCorrupt, found before any write: not run as new, not replayed, not replaced.",
		a.claims(first), a.completes("answer"), a.isDamaged(how), a.isCorrupt(),
		a.of(1).claims(first), a.of(1).isDamaged(how), a.of(1).isCorrupt(), a.of(2).claims(first), a.of(2).renewsBeside(a.of(1)))
}

// renewsBeside renews a live attempt in one batch with a record that cannot be read.
func (p actor) renewsBeside(unreadable actor) step {
	return p.call("renews beside a corrupt record", func(s *scene, c *caller) error {
		if got, err := s.caller(unreadable).tryRenew(c); err != nil || got[1] != store.Renewed {
			return unlike("renew", got, err, store.Renewed)
		}
		return nil
	})
}

// claimsCorrupt claims a record that cannot be read.
func (p actor) claimsCorrupt() step {
	return p.call("claims what is corrupt", func(_ *scene, c *caller) error {
		got, err := c.tryClaim()
		return wantError(fmt.Sprint("claim answered ", got.Outcome), err, corrupt)
	})
}

// isCorrupt demands that every operation finds the record corrupt and leaves it so. There
// may be nothing to release or to renew.
func (p actor) isCorrupt() step {
	b, x := b.of(p.operation), x.of(p.operation)
	return step{p.String() + " has a corrupt record", func(s *scene) error {
		s.Helper()
		return s.run([]step{
			p.claimsCorrupt(), b.claimsCorrupt(), x.claimsCorrupt(),
			p.completes("over a corrupt record", corrupt), p.saysUnknown("over a corrupt record", corrupt),
			p.call("releases", func(_ *scene, c *caller) error {
				if err := c.tryRelease(); err != nil {
					return wantError("release", err, corrupt)
				}
				return nil
			}),
			p.call("renews", func(_ *scene, c *caller) error {
				got, err := c.tryRenew()
				if err == nil && got[0] == store.RenewLost {
					return nil
				}
				return wantError(fmt.Sprint("renew answered ", got), err, corrupt)
			}),
			b.claimsCorrupt(),
		})
	}}
}

// unreadableCases are about how operators see and forget them.
var unreadableCases = []testCase{
	unreadableCase("unreadable-version", UnknownVersion),
	unreadableCase("unreadable-state", UnknownState),
	unreadableCase("unreadable-truncated", Truncated),
	unreadableCase("unreadable-type", WrongType),
	scenario("resolve-unreadable", []conformance.Need{conformance.CorruptHook, conformance.Inspector}, "Inspector.Resolve, Record.Fence",
		"An operator can forget an unreadable record, whose ID is then new, by the fence that it is shown with, and no readable one as unreadable.",
		a.isResolved(forget(unreadable).unseen(), invalid), a.isResolved(forget(unreadable), changed),
		a.claims(first), a.completes("answer"), a.shows(completed), a.isResolved(forget(unreadable), changed),
		a.of(1).claims(first), a.of(1).isResolved(forget(unreadable), changed), b.of(1).claims(inProgress),
		a.of(2).lapses(1), a.of(2).isResolved(forget(unreadable), changed), a.of(2).completes("late"), b.of(2).claims(replay("late")),
		a.isDamaged(Truncated), a.shows(unreadable), a.isListed(unreadable, fenceAsInspected),
		a.isResolved(forget(store.StateLapsed), changed), a.isResolved(forget(completed), changed),
		a.isResolved(forget(unreadable).later(), changed), b.claimsCorrupt(),
		a.isResolved(forget(unreadable)), a.isResolved(forget(unreadable), changed),
		x.claims(first), x.completes("another answer"), x.isDamaged(Truncated), a.isResolved(forget(unreadable), changed)),
}

// fenceAsInspected is the sight of an unreadable record that was inspected before.
func fenceAsInspected(c *caller, r *store.Record) error {
	if r.Fence == 0 || r.Fence != c.seen {
		return fmt.Errorf("inspected fence %d, listed %d", c.seen, r.Fence)
	}
	return nil
}

func unreadableCase(id string, how Corruption) testCase {
	return scenario(id, []conformance.Need{conformance.CorruptHook, conformance.Inspector}, "StateUnreadable, Inspector",
		"A record that cannot be read ("+string(how)+") is shown as unreadable, inspected and listed, whatever its age; "+
			"it is neither hidden nor an error of the listing.",
		b.of(1).claims(first), b.of(1).completes("answer"), a.claims(first), a.completes("answer"), a.isDamaged(how),
		a.shows(unreadable), a.isListed(unreadable),
		listsOlder(long, store.Query{States: store.States(unreadable)}, a), b.of(1).isListed(completed), mayCount(counts("", 1, 0, a)))
}
