package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"sync"
	"sync/atomic"
	"time"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/internal/slots"
)

// savepoint is the name of the savepoint before the effects of a handler.
const savepoint = "reprise_attempt"

// Tx is a transaction and its connection.
type Tx struct {
	*sql.Tx

	Conn *sql.Conn

	// Bounded makes the commit end with its context. The result of the transaction is then
	// unknown.
	Bounded bool

	// Before is called before the connection returns to the pool. open says that the
	// transaction may still be open, because another goroutine is about to end it. If Before
	// returns an error, the connection is closed instead. It may be nil.
	Before func(open bool) error

	// Broken makes End close the connection instead of returning it to the pool.
	Broken bool

	ended sync.Once
}

// commit commits. If that fails, it rolls back, because a commit of SQLite that finds the
// file busy leaves the transaction open, and not every driver ends it.
func (t *Tx) commit(ctx context.Context) error {
	if t.Bounded {
		_, err := t.ExecContext(ctx, "COMMIT")
		return err
	}
	err := t.Commit()
	if err != nil {
		_, _ = t.Conn.ExecContext(ctx, "ROLLBACK") // fails where no transaction is open
	}
	return err
}

// End rolls back, unless the transaction has ended, and returns the connection to the
// pool. It may be called more than once.
func (t *Tx) End() {
	if t == nil {
		return
	}
	t.ended.Do(func() {
		open := t.Tx != nil && t.Rollback() != nil // the watchdog's rollback may be on its way
		if t.Broken || t.Before != nil && t.Before(open) != nil {
			retire(t.Conn)
		}
		_ = t.Conn.Close()
	})
}

// retire closes a connection of the pool. A transaction on it must have ended before,
// because database/sql waits for it.
func retire(conn *sql.Conn) { _ = conn.Raw(func(any) error { return driver.ErrBadConn }) }

// attempt is one transaction, from its claim to its end.
type attempt struct {
	dialect     *Dialect
	id          store.ID
	owner       store.Owner
	fingerprint store.Fingerprint
	request     store.ClaimRequest
	number      int
	fence       int64
	tx          *Tx
	handler     *sql.Tx // that of tx at first: a handler that was left behind may still ask for it
	deadline    time.Time
	expired     atomic.Bool // the watchdog rolled back
	watchdog    *time.Timer
	slot        sync.Once // gives the slot back
}

// result is the answer to the claim, and to a repetition of it.
func (a *attempt) result() store.ClaimResult {
	return store.ClaimResult{
		Outcome: store.Claimed, Atomic: true,
		Attempt: a.number, Fence: uint64(a.fence), Remaining: time.Until(a.deadline), //nolint:gosec // fences are positive
	}
}

// over reports whether the deadline of the attempt has passed, so that it can no longer
// commit.
func (a *attempt) over() bool { return a.expired.Load() || !time.Now().Before(a.deadline) }

// watch rolls back at the deadline, so that other attempts can run even if the handler
// never returns. Its next statement fails.
func (a *attempt) watch(release func()) {
	tx := a.tx
	a.watchdog = time.AfterFunc(time.Until(a.deadline), func() {
		a.expired.Store(true)
		tx.End()
		a.slot.Do(release)
	})
}

// unwatch stops the watchdog: from then on, the context of the caller bounds the attempt.
func (a *attempt) unwatch() { a.watchdog.Stop() }

// attemptKey is the key of the attempt in the handler's context.
type attemptKey struct{}

// Bind makes the transaction of the attempt available to [TxFrom].
func (s *Transactional) Bind(ctx context.Context, id store.ID, owner store.Owner) context.Context {
	if a := s.find(id, owner); a != nil {
		return context.WithValue(ctx, attemptKey{}, a)
	}
	return ctx
}

// TxFrom returns the transaction of the attempt on a database of d that ctx belongs to.
func TxFrom(ctx context.Context, d *Dialect) (*sql.Tx, bool) {
	a, _ := ctx.Value(attemptKey{}).(*attempt)
	if run, found := store.RunContext(ctx); a == nil && found {
		a, _ = run.Value(attemptKey{}).(*attempt)
	}
	if a == nil || a.dialect != d {
		return nil, false
	}
	return a.handler, true
}

// find returns the attempt of owner that runs in this process, or nil.
func (s *Transactional) find(id store.ID, owner store.Owner) *attempt {
	s.mu.Lock()
	defer s.mu.Unlock()
	if a := s.attempts[owner]; a != nil && a.id == id {
		return a
	}
	return nil
}

// take removes and returns the attempt of owner, which the caller has to end, or returns
// nil.
func (s *Transactional) take(id store.ID, owner store.Owner) *attempt {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.attempts[owner]
	if a == nil || a.id != id {
		return nil
	}
	delete(s.attempts, owner)
	return a
}

// end ends an attempt and releases its slot.
func (s *Transactional) end(a *attempt) {
	a.unwatch()
	a.tx.End()
	s.mu.Lock()
	if s.running[a.id] == a {
		delete(s.running, a.id)
	}
	s.mu.Unlock()
	a.slot.Do(s.slots.Release)
}

// Usage counts the connections of the pool, the slots, and the claims that wait for a
// slot.
func (s *Transactional) Usage() []store.Usage {
	stats := s.slots.Stats()
	return append(s.Table.Usage(), store.Usage{
		Name: "slots", Used: int64(stats.InUse), Limit: int64(stats.Slots), Waiting: int64(stats.Waiting),
	})
}

// Slotted is a [Writer] that waits for a slot, so that single writes take turns with the
// attempts of a transactional store.
type Slotted struct {
	Slots   *slots.Slots
	Writer  Writer
	Dialect *Dialect
}

// Write implements [Writer].
func (w *Slotted) Write(ctx context.Context, op string, f func(context.Context, Conn) error) error {
	if err := w.Slots.Take(ctx, w.Slots.Enqueue()); err != nil {
		return w.Dialect.Fail(op, err)
	}
	defer w.Slots.Release()
	return w.Writer.Write(ctx, op, f)
}
