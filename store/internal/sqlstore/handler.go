package sqlstore

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/internal/lazytx"
	"github.com/reprise-go/reprise/store/internal/slots"
	"github.com/reprise-go/reprise/store/internal/sqltx"
)

// savepoint is the name of the savepoint before the effects of a handler. It is gone
// where the handler ended the transaction itself.
const savepoint = "reprise_attempt"

// backTimeout bounds the statements that end a transaction without a caller.
const backTimeout = 2 * time.Second

// transactions returns the transactions of handlers, of which s bounds the number.
func (t *Table) transactions(s *slots.Slots) *lazytx.Transactions {
	timeout := t.Options.TxTimeout
	begin := append(t.Dialect.Begin(timeout), "SAVEPOINT "+savepoint)
	return &lazytx.Transactions{
		Name: t.Dialect.Name, Timeout: timeout, Slots: s,
		Open: func(ctx context.Context, id store.ID, owner store.Owner) (lazytx.Session, error) {
			return t.open(ctx, begin, id, owner)
		},
		Find: t.Find,
	}
}

// SQLTx returns the transaction of the attempt that ctx belongs to, and begins it at its
// first call.
func (d *Dialect) SQLTx(ctx context.Context) (*sql.Tx, error) {
	began, err := lazytx.Begin(ctx, d.Name)
	if err != nil {
		return nil, err
	}
	return began.(*session).lent.Tx, nil //nolint:forcetypeassert // there is no other of this name
}

// session is the connection of a handler's transaction.
type session struct {
	*Table

	held  *sqltx.Held
	on    connection  // for the store, while the handler does not have it
	lent  *sqltx.Lent // for the handler
	id    store.ID
	owner store.Owner
	taken bool // back from the handler
	over  bool // the transaction has ended

	mu       sync.Mutex
	ending   bool
	record   *row // while the transaction excludes all others, with the lease that was promised
	promised bool // that lease has yet to be written
}

// open begins a transaction by statements.
func (t *Table) open(ctx context.Context, statements []string, id store.ID, owner store.Owner) (lazytx.Session, error) {
	start := time.Now()
	held, err := sqltx.Hold(ctx, t.db.DB)
	if err != nil {
		return nil, t.db.fail("begin", start, err)
	}
	s := &session{Table: t, held: held, on: connection{t.db.prepared.On(held.Conn)}, id: id, owner: owner}
	if err := s.begin(ctx, statements); err != nil {
		s.release(true)
		return nil, err
	}
	if t.Dialect.Embedded {
		t.writer.Store(s)
	}
	return s, nil
}

// begin begins a transaction on the connection, and makes that of its handler. One that
// excludes all others reads the record, which stays so until it ends.
func (s *session) begin(ctx context.Context, statements []string) (err error) {
	for _, statement := range statements {
		if err := s.Dialect.start(ctx, s.on, statement); err != nil {
			return s.Dialect.Fail("begin", err)
		}
	}
	if s.Dialect.Embedded {
		if s.record, err = s.hold(ctx, s.on, s.id); err != nil {
			return s.Dialect.Fail("begin", err)
		}
	}
	s.lent, err = sqltx.Lend(s.held.Conn, s.undoes) //nolint:contextcheck // it outlives this call
	return s.Dialect.Fail("begin", err)
}

// undoes is [Dialect.Undoes]. A transaction that excluded all others does so no more, and
// they need not wait until its handler returns.
func (s *session) undoes(on *sqltx.Session, err error) bool {
	undone := s.Dialect.Undoes(on, err)
	if undone && s.Dialect.Embedded {
		s.Transactions.Slots.Release()
	}
	return undone
}

// Refuse implements [lazytx.Session].
func (s *session) Refuse() { s.lent.Refuse() }

// Expire implements [lazytx.Session].
func (s *session) Expire() (over bool, err error) {
	s.lent.Interrupt()
	ctx, cancel := context.WithTimeout(context.Background(), backTimeout)
	defer cancel()
	return true, s.Rollback(ctx)
}

// Commit implements [lazytx.Session].
func (s *session) Commit(ctx context.Context, r *store.CompleteRequest) (err error) {
	s.takeBack(ctx)
	ctx = s.Dialect.rest(ctx)
	defer func() {
		if err != nil {
			_ = s.undo(ctx) // so that its locks are free before the answer is sent
		}
	}()
	if err := s.finish(ctx, r); err != nil {
		return err
	}
	err = s.Dialect.FailCommit("complete", s.on.execute(ctx, "COMMIT"))
	switch {
	case err == nil:
		s.over = true
	case !errors.Is(err, store.ErrUnknown): // the server refused it
		err = lazytx.NotApplied(s.Dialect.Name, err.Error())
	}
	return err
}

// same executes a statement on the savepoint, and returns an error if the transaction is
// not the one that began, or is lost.
func (s *session) same(ctx context.Context, statement string) error {
	if s.lent.Undone() {
		return lazytx.NotApplied(s.Dialect.Name, "a statement of the handler failed, and its transaction was rolled back with it")
	}
	switch err := s.on.execute(ctx, statement+savepoint); {
	case err == nil:
		return nil
	case s.Dialect.NoSavepoint(err):
		return lazytx.EndedByHandler(s.Dialect.Name)
	default:
		return lazytx.NotApplied(s.Dialect.Name, err.Error())
	}
}

// finish completes the record in the transaction.
func (s *session) finish(ctx context.Context, r *store.CompleteRequest) error {
	notApplied := func(why string) error { return lazytx.NotApplied(s.Dialect.Name, why) }
	if err := s.same(ctx, "RELEASE SAVEPOINT "); err != nil {
		return err
	}
	if done, err := s.completeOwn(ctx, s.on, r, s.statements.completeHeld); err != nil {
		return notApplied(err.Error())
	} else if done {
		return nil
	}
	found, err := s.hold(ctx, s.on, s.id)
	if err != nil {
		return notApplied(err.Error())
	}
	if s.promised {
		found.LeaseUntil = s.record.LeaseUntil
	}
	if !found.runs(s.owner) || !found.seen() {
		return Lost(s.Dialect.Name, "complete")
	}
	if err := s.complete(ctx, s.on, found, endingOf(r)); err != nil {
		return notApplied(err.Error())
	}
	return nil
}

// runs reports whether the record is in progress and the owner's.
func (r *row) runs(owner store.Owner) bool {
	return r.Found && r.Readable() && r.State == Running && bytes.Equal(r.Owner, owner[:])
}

// Rollback implements [lazytx.Session]. It writes a renewal that was answered while the
// transaction excluded all others.
func (s *session) Rollback(ctx context.Context) error {
	promised := s.takeBack(ctx)
	ctx = s.Dialect.rest(ctx)
	undone := s.same(ctx, "ROLLBACK TO SAVEPOINT ")
	if undone == nil && promised && s.keep(ctx) == nil {
		s.over = true
		return nil
	}
	err := s.undo(ctx)
	if errors.Is(undone, store.ErrMisconfigured) {
		return undone
	}
	return err
}

// keep commits the lease that was promised, after the effects were undone.
func (s *session) keep(ctx context.Context) error {
	found, err := s.hold(ctx, s.on, s.id)
	if err == nil && found.runs(s.owner) {
		err = s.change(ctx, s.on, found, s.statements.renew, s.record.LeaseUntil)
	}
	if err != nil {
		return err
	}
	return s.on.execute(ctx, "COMMIT")
}

// undo rolls back. If that fails, End closes the connection.
func (s *session) undo(ctx context.Context) error {
	if err := s.on.execute(ctx, "ROLLBACK"); err != nil {
		return fmt.Errorf("%w: %s: rollback: %s", store.ErrUnknown, s.Dialect.Name, err.Error())
	}
	s.over = true
	return nil
}

// takeBack takes the connection back from the handler, and reports whether a lease was
// promised. It waits for a statement that is on its way, so that ctx bounds it.
func (s *session) takeBack(ctx context.Context) (promised bool) {
	s.mu.Lock()
	s.ending = true
	promised = s.promised
	s.mu.Unlock()
	if !s.taken {
		stop := context.AfterFunc(ctx, s.lent.Interrupt)
		defer stop()
		s.lent.Close()
		s.taken = true
	}
	return promised
}

// End implements [lazytx.Session]. The settings of the session are restored after it
// returns, since no caller has to wait for that.
func (s *session) End(back func()) {
	s.writer.CompareAndSwap(s, nil)
	s.mu.Lock()
	s.ending = true
	s.mu.Unlock()
	s.lent.Interrupt()
	if !s.taken {
		s.lent.Close()
	}
	if s.Dialect.Embedded && s.lent.Undone() {
		back = func() {} // undoes released the turn
	}
	if !s.over || s.Dialect.Back == "" {
		s.release(!s.over)
		back()
		return
	}
	go func() {
		defer back()
		ctx, cancel := context.WithTimeout(context.Background(), backTimeout)
		defer cancel()
		s.release(s.on.execute(ctx, s.Dialect.Back) != nil)
	}()
}

// release gives the connection back to the pool, which closes it if it is broken.
func (s *session) release(broken bool) {
	if s.lent != nil {
		s.lent.End()
		broken = broken || s.lent.Panicked()
	}
	s.held.Release(s.on.end(broken) != nil)
}

// renew answers a renewal while the transaction excludes all others, if it is that of the
// owner, and reports whether it did. It does not where SQLite has rolled the transaction
// back by itself. Rollback writes the new lease.
func (s *session) renew(r *store.RenewRequest, status *store.RenewStatus) (answered bool) {
	if s == nil || s.id != r.ID || s.owner != r.Owner {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ending || s.lent.Undone() {
		return false
	}
	s.record.At = s.Dialect.now()
	if *status = s.record.renewal(r); *status == store.Renewed {
		s.promised, s.record.LeaseUntil = true, s.record.At+r.Lease.Microseconds()
	}
	return true
}

// Find finds out whether an owner has completed its record, where the answer to the
// COMMIT was lost: see [lazytx.Transactions]. It waits for the transaction that writes
// the record, and reads it then. A record that is still in progress is forgotten, because
// the server may not have begun what the COMMIT came with: now that finds no record, and
// rolls back. One that is completed is written as it is, because the answer to a commit
// is what confirms replication.
func (t *Table) Find(ctx context.Context, id store.ID, owner store.Owner) error {
	ctx, cancel := context.WithTimeout(ctx, lazytx.FindWait(ctx))
	defer cancel()
	var result error
	err := t.Write(ctx, "complete", func(ctx context.Context, on Conn) error {
		found, err := t.query(ctx, on, t.statements.wait, id, false)
		switch {
		case err != nil:
			return err
		case found.runs(owner):
			result = lazytx.NotApplied(t.Dialect.Name, "the COMMIT was not executed")
			return t.forget(ctx, on, found)
		case found.Found && found.Readable() && bytes.Equal(found.Owner, owner[:]): // completed
			result = nil
			return t.change(ctx, on, found, t.statements.touch)
		}
		result = lazytx.Undecided(t.Dialect.Name, "the record is not this owner's any more")
		return nil
	})
	switch {
	case err == nil:
		return result
	case errors.Is(err, store.ErrNotReplicated):
		return err
	}
	return lazytx.Undecided(t.Dialect.Name, err.Error())
}
