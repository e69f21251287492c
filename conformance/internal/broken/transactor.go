package broken

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/reprise-go/reprise/core/store"
)

// transaction is that of an attempt. Its effects are counted.
type transaction struct {
	*Store

	id      store.ID
	owner   store.Owner
	written int
	begun   bool
	closed  bool
	ended   bool // by a statement of the handler
}

// txKey is the key of the transaction in the context of a handler.
type txKey struct{}

// Transacts implements [store.Transactor].
func (s *Store) Transacts() error { return nil }

// Transaction implements [store.Transactor].
func (s *Store) Transaction(ctx context.Context, id store.ID, owner store.Owner) (context.Context, store.Transaction) {
	c := &call{ctx: ctx, op: begin, id: &id, from: &owner, tx: &transaction{Store: s, id: id, owner: owner}}
	s.run(c, func() {})
	return context.WithValue(c.ctx, txKey{}, c.tx), c.tx
}

// Write writes an effect in the transaction of the attempt that ctx belongs to.
func Write(ctx context.Context) error { return Exec(ctx, "WRITE") }

// Exec executes a statement there: COMMIT, ROLLBACK or any other, which has an effect.
func Exec(ctx context.Context, statement string) error {
	tx := ctx.Value(txKey{}).(*transaction) //nolint:forcetypeassert // it is that of a handler
	c := &call{ctx: ctx, op: write, id: &tx.id, from: &tx.owner, tx: tx}
	tx.run(c, func() {
		switch {
		case tx.closed:
			c.err = errors.New("the attempt has ended")
		case statement == "COMMIT":
			tx.effects += tx.written
			tx.written, tx.ended = 0, true
		case statement == "ROLLBACK":
			tx.written, tx.ended = 0, true
		default:
			tx.begun = true
			tx.written++
		}
	})
	return c.err
}

// Effects returns how many effects are committed.
func (b *Backing) Effects() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.effects
}

// Close implements [store.Transaction].
func (tx *transaction) Close() (begun bool) {
	c := &call{op: leave, id: &tx.id, from: &tx.owner, tx: tx}
	tx.run(c, func() { tx.closed = true })
	return tx.begun
}

// Commit implements [store.Transaction].
func (tx *transaction) Commit(ctx context.Context, r store.CompleteRequest) error {
	c := &call{ctx: ctx, op: commit, id: &tx.id, from: &tx.owner, complete: &r, tx: tx}
	tx.run(c, func() {
		if tx.ended {
			c.err = errEnded
			return
		}
		if c.err = tx.right.Complete(ctx, r); c.err == nil {
			tx.note(r.ID, func(k *known) { k.done, k.doneAt, k.valid = &r, c.now, c.now.Add(r.Remembered()) })
			tx.effects += tx.written
			tx.wake(c)
		}
	})
	return c.err
}

// Rollback implements [store.Transaction].
func (tx *transaction) Rollback(ctx context.Context) error {
	c := &call{ctx: ctx, op: rollback, id: &tx.id, from: &tx.owner, tx: tx}
	tx.run(c, func() {
		if tx.written = 0; tx.ended {
			c.err = errEnded
		}
	})
	return c.err
}

var errEnded = fmt.Errorf("%w: ended by its handler", store.ErrMisconfigured)

// transactionFlaws are those of the transactions of handlers.
func transactionFlaws() []storeFlaw {
	early := func(c *call) { c.effects += c.tx.written; c.tx.written = 0 }
	return []storeFlaw{
		flawed("tx-autocommits", "commits each statement of a handler at once", "tx-commit", flips(write, early)),
		flawed("tx-loses-effects", "completes the record without the effects", "tx-commit", swaps(commit, func(c *call) { c.tx.written = 0 })),
		flawed("tx-other-policy", "keeps a result of a transaction as long as the claim said", "tx-record",
			swaps(commit, func(c *call) { c.complete.Retention = time.Hour })),
		flawed("tx-always-begun", "begins a transaction for every handler", "tx-none", flips(begin, func(c *call) { c.tx.begun = true })),
		flawed("tx-keeps-effects", "commits what was to be rolled back", "tx-rollback", swaps(rollback, early)),
		flawed("tx-rollback-forgets", "forgets the record with the effects", "tx-rollback", flips(rollback, func(c *call) { c.forget(*c.id) })),
		flawed("tx-stays-open", "lets handlers write after their attempt", "tx-over", flips(leave, func(c *call) { c.tx.closed = false })),
		flawed("tx-unfenced", "commits the effects of a former owner", "tx-takeover", swaps(commit, func(c *call) {
			if !c.own() {
				early(c)
			}
		})),
		flawed("tx-strict-lease", "rolls back what was late, although nobody took over", "tx-late", drops(commit, store.ErrLeaseLost, hasLapsed)),
		flawed("tx-unseen", "commits the effects of an attempt that is not seen any more", "tx-unseen", accepts(commit, store.ErrLeaseLost, nothing)),
		flawed("tx-renews-in-vain", "undoes a renewal with the transaction", "tx-renew", flips(rollback, func(c *call) {
			_, _ = c.right.Renew(c.ctx, []store.RenewRequest{{ID: *c.id, Owner: *c.from, Lease: store.MinDuration}})
			c.pause()
		})),
		flawed("tx-end-not-found", "completes a transaction that its handler ended", "tx-ended", swaps(commit, func(c *call) { c.tx.ended = false })),
		flawed("tx-end-undone", "says that it rolled back what its handler had committed", "tx-ended", accepts(rollback, store.ErrMisconfigured, running)),
		flawed("tx-shared", "commits the effects of all attempts with the first", "tx-at-once", swaps(rollback, early)),
		flawed("tx-context-apart", "gives handlers a context of its own", "tx-context", flips(begin, func(c *call) { c.ctx = context.Background() })),
	}
}
