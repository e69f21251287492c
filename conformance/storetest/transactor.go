package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/reprise-go/reprise/conformance"
	"github.com/reprise-go/reprise/core/store"
)

// Effects reaches the transactions of a [store.Transactor] as handlers do.
type Effects struct {
	// Write writes a new effect through the transaction of the attempt that ctx belongs to,
	// which it begins at its first call.
	Write func(ctx context.Context) error

	// Exec executes a statement through that transaction, which has begun.
	Exec func(ctx context.Context, statement string) error

	// Count returns how many effects are committed.
	Count func(testing.TB) int
}

var (
	transactor          = []conformance.Need{conformance.Transactor}
	transactorInspector = []conformance.Need{conformance.Transactor, conformance.Inspector}
)

var transactorCases = []testCase{
	scenario("tx-commit", transactor, "Transaction.Commit, G4 effects",
		"The effects of an attempt are committed with its completion, and not before; until then its claim is seen by all.",
		a.claims(first), a.writes(), effects(0), b.claims(inProgress), a.writes(), a.commits("answer"), effects(2), b.claims(replay("answer"))),
	scenario("tx-record", transactorInspector, "Transaction.Commit; Store.Complete",
		"A completion in a transaction keeps what any other keeps: payload, policy and instants.",
		a.label("orders").describe("POST /orders").horizon(long).claims(first), a.shows(store.StateRunning), a.writes(), a.commits("answer"),
		a.shows(store.StateCompleted), a.of(1).horizon(long).keep(short).claims(first), a.of(1).writes(), a.of(1).commits("answer"),
		passes(short), b.of(1).claims(expired)),
	scenario("tx-none", transactor, "Transaction.Close",
		"A handler that asks for no transaction has none, and its attempt ends as any other.",
		a.claims(first), a.closes(false), a.completes("answer"), effects(0), b.claims(replay("answer"))),
	scenario("tx-rollback", transactor, "Transaction.Rollback",
		"A rollback undoes the effects and leaves the record as it was: the attempt may be completed or released.",
		a.claims(first), a.writes(), a.rollsBack(), effects(0), b.claims(inProgress), a.renews(store.Renewed), a.completes("a failure"),
		b.claims(replay("a failure")), a.of(1).claims(first), a.of(1).writes(), a.of(1).rollsBack(), a.of(1).releases(), b.of(1).claims(first), effects(0)),
	scenario("tx-over", transactor, "Transaction.Close",
		"After its attempt a handler writes nothing, whether its transaction had begun or not.",
		a.claims(first), a.closes(false), a.writesInVain(), a.of(1).claims(first), a.of(1).writes(), a.of(1).closes(true), a.of(1).writesInVain(),
		a.of(1).commits("answer"), effects(1)),
	scenario("tx-takeover", transactor, "Transaction.Commit, G3 fencing, G4 effects",
		"An attempt that was taken over commits nothing, whether the other one runs or has ended, and does not disturb it.",
		a.lapses(1), b.claims(attempt(2)), a.writes(), a.commits("of the former owner", lost), effects(0), b.completes("answer"), a.claims(replay("answer")),
		a.of(1).lapses(1), b.of(1).claims(attempt(2)), b.of(1).completes("answer"), a.of(1).writes(), a.of(1).commits("late", lost), effects(0),
		a.of(1).claims(replay("answer")), a.of(2).lapses(1), b.of(2).claims(attempt(2)), b.of(2).releases(), a.of(2).writes(), a.of(2).commits("late", lost),
		effects(0), b.of(2).claims(first)),
	scenario("tx-late", transactor, "Transaction.Commit; Store.Complete",
		"An attempt whose lease has run out commits, unless it was taken over.",
		a.lapses(1), a.writes(), a.commits("late"), effects(1), b.claims(replay("late"))),
	scenario("tx-unseen", transactor, "Transaction.Commit; Store, Records",
		"An attempt that is not seen any more commits nothing.",
		a.ends(), a.writes(), a.commits("late", lost), effects(0), b.claims(first)),
	scenario("tx-renew", transactor, "Store.Renew; Transaction",
		"The lease of an attempt is renewed while its transaction is open, and holds after it.",
		a.lapses(1), a.writes(), a.renews(store.Renewed), a.rollsBack(), b.claims(inProgress), a.completes("answer"), effects(0)),
	scenario("tx-ended", transactor, "Transaction.Commit, ErrMisconfigured; Transaction.Rollback",
		"A transaction that its handler ended by a statement is not completed, nor rolled back, as nothing says whether its effects stay.",
		each([]string{"COMMIT", "ROLLBACK"}, func(statement string) []step {
			return []step{
				a.claims(first), a.writes(), a.executes(statement), a.commits("answer", store.ErrMisconfigured),
				a.saysUnknown("it ended its transaction"), b.claims(lapsed),
				a.of(1).claims(first), a.of(1).writes(), a.of(1).executes(statement), a.of(1).rollsBack(store.ErrMisconfigured), a.of(1).releases(),
			}
		})),
	function("tx-at-once", transactor, "Transactor",
		"Attempts in two processes at once each commit their own effects.",
		func(s *scene) {
			const attempts = 16
			var group sync.WaitGroup
			errs := make(chan error, attempts)
			for n := range attempts {
				p := a.of(n)
				p.there = n%2 == 1
				c := s.caller(p) // not in the goroutines, as scenes are for one
				group.Go(func() { errs <- s.runs(c, n%4 == 3) })
			}
			group.Wait()
			for range attempts {
				if err := <-errs; err != nil {
					s.Error(err)
				}
			}
			s.must(effects(attempts * 3 / 4))
		}),
	function("tx-context", transactor, "Transactor.Transaction",
		"The context of a handler has the values of the one that it was made from, and ends with it.",
		func(s *scene) {
			type key struct{}
			s.must(a.claims(first))
			c := s.caller(a)
			parent, cancel := context.WithCancel(context.WithValue(s.Context(), key{}, "value"))
			defer cancel()
			bound, tx := ability[store.Transactor](c.store).Transaction(parent, c.ID, c.Owner)
			if bound.Value(key{}) != "value" || bound.Err() != nil {
				s.Errorf("the context has the value %v, and has ended: %v", bound.Value(key{}), bound.Err())
			}
			if cancel(); bound.Err() == nil {
				s.Error("the context does not end with the one that it was made from")
			}
			tx.Close()
		}),
}

// runs claims, writes an effect, and commits or rolls back.
func (s *scene) runs(c *caller, discard bool) error {
	if got, err := c.tryClaim(); err != nil || got.Outcome != store.Claimed {
		return unlike("claim", got, err, "a grant")
	}
	if err := c.fixture.Effects.Write(c.handler()); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	c.tx.Close()
	if discard {
		return tell(c, "rollback", c.tx.Rollback)
	}
	return c.tryCommit("answer")
}

// handler returns the context of the caller's handler.
func (c *caller) handler() context.Context {
	if c.tx == nil {
		c.bound, c.tx = ability[store.Transactor](c.store).Transaction(context.WithoutCancel(c.Context()), c.ID, c.Owner)
	}
	return c.bound
}

func (c *caller) tryCommit(payload string) error {
	return tell(c, "commit", func(ctx context.Context) error { return c.tx.Commit(ctx, c.completion(payload)) }, payload)
}

// effects counts what is committed.
func effects(want int) step {
	return step{fmt.Sprintf("%d effects are committed", want), func(s *scene) error {
		if got := s.fixture.Effects.Count(s); got != want {
			return fmt.Errorf("%d effects are committed, want %d", got, want)
		}
		return nil
	}}
}

func (p actor) writes() step {
	return p.call("writes", func(_ *scene, c *caller) error {
		return wantError("write", c.fixture.Effects.Write(c.handler()), nil)
	})
}

func (p actor) writesInVain() step {
	return p.call("writes in vain", func(_ *scene, c *caller) error {
		if c.fixture.Effects.Write(c.handler()) == nil {
			return errors.New("a write after the attempt succeeded")
		}
		return nil
	})
}

func (p actor) executes(statement string) step {
	return p.call("executes "+statement, func(_ *scene, c *caller) error {
		return wantError(statement, c.fixture.Effects.Exec(c.handler(), statement), nil)
	})
}

func (p actor) closes(begun bool) step {
	return p.call("returns", func(_ *scene, c *caller) error {
		c.handler()
		if got := c.tx.Close(); got != begun {
			return fmt.Errorf("the transaction was begun: %t, want %t", got, begun)
		}
		return nil
	})
}

func (p actor) commits(payload string, want ...error) step {
	return p.call("commits", func(_ *scene, c *caller) error {
		c.tx.Close()
		err := c.tryCommit(payload)
		if err == nil {
			c.payload = payload
		}
		return wantError("commit", err, wanted(want))
	})
}

func (p actor) rollsBack(want ...error) step {
	return p.call("rolls back", func(_ *scene, c *caller) error {
		c.tx.Close()
		return wantError("rollback", tell(c, "rollback", c.tx.Rollback), wanted(want))
	})
}
