package transactional

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/postgres/internal/table"
	"github.com/reprise-go/reprise/store/postgres/internal/wire"
)

// commit stores the response and commits, in one round trip over a pgx pool. Its error
// wraps ErrNotApplied only if the COMMIT was never sent or the server refused it, and
// ErrUnknown if it may have been executed.
func (s *Store) commit(ctx context.Context, a *attempt, r *ending) error {
	a.stopWatchdog() // from here on ctx is the bound
	if a.sqlTx != nil {
		// In database/sql, every call waits for a statement that the handler left running,
		// and Commit takes no context.
		stop := context.AfterFunc(ctx, a.session.Kill)
		defer stop()
	}
	failed := false
	err := a.session.Do(func(conn *pgx.Conn) error {
		wire.Unconfirmed(conn) // forget the mark of earlier statements
		failed = conn.PgConn().TxStatus() == txFailed
		return a.ready(conn, r.DiscardEffects)
	})
	switch {
	case err == nil:
	case r.reason != "":
		a.hangUp(ctx)
		return s.commitElsewhere(ctx, a, r)
	default:
		return err
	}
	var (
		batch  steps
		own    = 1              // how many steps find out whether the handler ended its transaction
		viaSQL = a.sqlTx != nil // database/sql commits
	)
	if r.DiscardEffects {
		if failed {
			own, a.prepared = 0, false // it accepts no statement before ROLLBACK, not even to prepare one
		}
		s.addDiscard(&batch, a, r, !failed)
	}
	s.addKeep(&batch, a, r)
	if viaSQL {
		return s.commitSQLTx(ctx, a, &batch)
	}
	kept := len(batch.calls)
	batch.add(s.statements.commit, nil)
	err = a.session.Do(func(conn *pgx.Conn) error {
		err := batch.send(ctx, conn, a.prepared)
		if wire.Unconfirmed(conn) {
			return table.NotReplicated("complete")
		}
		if a.prepared && wire.NotPrepared(err) {
			s.table.Sender.GiveUp(ctx, err) // without a second try: it undid the writes of the handler
		}
		return failCommit(err, batch.done, own, kept)
	})
	if err == nil && batch.tag.String() != "COMMIT" {
		return notApplied("the server answered COMMIT with " + batch.tag.String())
	}
	return err
}

// addKeep adds the statements that write the completed record. The first of them fails,
// with CodeDivisionByZero, if the handler ended its transaction.
func (s *Store) addKeep(b *steps, a *attempt, r *ending) {
	numbers := wire.AppendInt4(make([]byte, 0, 4+6*8), a.number)
	numbers = wire.AppendInt8(numbers, a.fence)
	numbers = wire.AppendInt8(numbers, table.Microseconds(r.Retention))
	numbers = wire.AppendInt8(numbers, table.Microseconds(r.Horizon))
	numbers = wire.AppendTimestamp(numbers, a.claimedAt)
	numbers = wire.AppendTimestamp(numbers, a.beganAt)
	numbers = wire.AppendInt8(numbers, a.replaced)
	attempt, fence, retention, horizon := numbers[:4], numbers[4:12], numbers[12:20], numbers[20:28]
	claimedAt, beganAt, replaced := numbers[28:36], numbers[36:44], numbers[44:]
	if r.DiscardEffects {
		beganAt = nil
	}
	values := [][]byte{
		a.id[:], a.owner[:], a.fingerprint[:], attempt, fence, table.NotNull(r.Payload),
		retention, horizon, []byte(a.policy.Label), wire.BinaryBool(a.policy.AtMostOnce), []byte(a.description), claimedAt, beganAt,
	}
	if a.replaces {
		if beganAt != nil {
			b.add(s.statements.same, nil, beganAt)
		}
		values[len(values)-1] = replaced
		b.add(s.statements.replace, nil, values...)
	} else {
		b.add(s.statements.keep, nil, values...)
	}
	if r.reason != "" {
		b.add(s.statements.unknown, nil, a.id[:], r.owner(), []byte(r.reason))
	}
}

// commitSQLTx is commit for a transaction that database/sql began and has to commit, so
// that database/sql refuses further calls of the handler. The first step finds out
// whether the handler ended it.
func (s *Store) commitSQLTx(ctx context.Context, a *attempt, b *steps) error {
	if err := s.send(ctx, a, b); err != nil {
		if b.done == 0 && wire.HasCode(err, wire.CodeDivisionByZero) {
			return errEndedByHandler
		}
		return notApplied(err.Error()) // COMMIT was not sent
	}
	var err error
	a.inSQL(func() { err = a.sqlTx.Commit() })
	confirmed := true
	_ = a.session.Do(func(conn *pgx.Conn) error { confirmed = !wire.Unconfirmed(conn); return nil })
	switch {
	case !confirmed:
		return table.NotReplicated("complete")
	case errors.Is(err, pgx.ErrTxCommitRollback):
		return notApplied("the server answered COMMIT with ROLLBACK")
	}
	return failCommit(err, 0, 0, 0)
}

// ready returns an error if there is no transaction to commit.
func (a *attempt) ready(conn *pgx.Conn, discard bool) error {
	status := conn.PgConn().TxStatus()
	switch {
	case a.expired.Load():
		return notApplied("the attempt outlasted Config.TxTimeout")
	case conn.IsClosed():
		return notApplied("the connection ended before COMMIT was sent")
	case conn.PgConn().IsBusy():
		return notApplied("the handler left a result open; read or close it before the handler returns")
	case status == txIdle:
		return errEndedByHandler
	case status == txFailed && !discard:
		return notApplied("a statement of the handler failed, and with it its transaction")
	}
	return nil
}

// addDiscard adds the statements that undo the effects of the handler and begin the
// transaction again. If sound is true, no statement of the transaction has failed. Then
// the statements first check that it still is the transaction of the claim, and, for an
// unknown outcome, the session holds the lock of the attempt throughout; that takes one
// batch, because a pooler may lend the session between two. Otherwise the lock is free
// for two statements of the batch, and the batch fails if another attempt has taken it or
// completed the record.
func (s *Store) addDiscard(b *steps, a *attempt, r *ending, sound bool) {
	lock := wire.AppendInt8(nil, s.lockKey(a.id))
	holds := sound && r.reason != ""
	if sound {
		b.add(s.statements.same, nil, wire.AppendTimestamp(nil, a.beganAt))
	}
	if holds {
		b.add(s.statements.hold, nil, lock)
	}
	b.add(s.statements.rollback, nil)
	b.add(s.statements.begin, nil)
	b.add(s.statements.locked, nil, lock)
	if holds {
		b.add(s.statements.unhold, nil, lock)
	}
}

// failCommit classifies the failure of the batch that ends in COMMIT. steps is how many
// of its steps succeeded. The first own steps check that the transaction is still the one
// that the claim began; the first kept steps come before COMMIT.
func failCommit(err error, steps, own, kept int) error {
	var serverErr *pgconn.PgError
	switch {
	case err == nil:
		return nil
	case wire.HasCode(err, wire.CodeNoTx), wire.HasCode(err, wire.CodeDivisionByZero) && steps < own:
		return errEndedByHandler
	case wire.HasCode(err, wire.CodeDivisionByZero, wire.CodeTaken) && steps < kept:
		return notApplied("another attempt has the record")
	case wire.HasCode(err, wire.CodeIdleTimeout):
		return notApplied("the server ended the session of an idle owner")
	case errors.As(err, &serverErr) && wire.Undone(serverErr):
		return notApplied(err.Error())
	}
	return fmt.Errorf("%w: postgres: complete: %s", store.ErrUnknown, err.Error()) // even if it says that it was not sent: see class in package wire
}

func notApplied(why string) error {
	return fmt.Errorf("%w: postgres: complete: %s", store.ErrNotApplied, why)
}

// errEndedByHandler is the error for a misuse that was detected too late to undo it.
var errEndedByHandler = fmt.Errorf("%w: postgres: complete: the handler ended the transaction of its attempt; leave COMMIT and ROLLBACK to the store",
	store.ErrMisconfigured)
