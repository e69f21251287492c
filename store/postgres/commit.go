package reprisepg

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/reprise-go/reprise/core/store"
)

// commit keeps the response and commits, in one round trip over a pgx pool. Its error
// wraps ErrNotApplied only where the COMMIT was never sent or the server refused it,
// and ErrUnknown where it may have been executed.
func (s *TransactionalStore) commit(ctx context.Context, a *attempt, r store.CompleteRequest) error {
	a.stopWatchdog() // from here on ctx is the bound
	if a.sqlTx != nil {
		// database/sql makes every call wait for a statement that the handler left running,
		// and COMMIT has no context.
		stop := context.AfterFunc(ctx, a.session.kill)
		defer stop()
	}
	failed := false
	err := a.session.do(func(conn *pgx.Conn) error {
		unconfirmed(conn) // forget what earlier statements left on it
		failed = conn.PgConn().TxStatus() == txFailed
		return a.ready(conn, r.DiscardEffects)
	})
	if err != nil {
		return err
	}
	if a.sqlTx != nil && !r.DiscardEffects {
		return s.commitSQLTx(ctx, a, &r)
	}
	var (
		batch steps
		own   = 1 // steps that find out whether the handler ended its transaction
	)
	if r.DiscardEffects {
		if own, err = s.addDiscard(ctx, a, &batch, failed); err != nil {
			return err
		}
		// The lock was free for a moment. Where another attempt has it now, or already
		// completed the record, this fails.
		batch.add(s.sql.begin, nil)
		batch.add(s.sql.locked, nil, appendInt8(nil, s.lockKey(a.id)))
	}
	s.addKeep(&batch, a, &r)
	kept := len(batch.calls)
	batch.add(s.sql.commit, nil)
	err = a.session.do(func(conn *pgx.Conn) error {
		err := batch.send(ctx, &s.records, conn, a.prepared)
		if unconfirmed(conn) {
			return notReplicated("complete")
		}
		if a.prepared && notPrepared(err) {
			s.giveUpPreparing(ctx, err)
		}
		return failCommit(err, batch.done, own, kept)
	})
	if err == nil && batch.tag.String() != "COMMIT" {
		return notApplied("the server answered COMMIT with " + batch.tag.String())
	}
	return err
}

// addKeep adds the statements that write the completed record. The first of them fails,
// with codeDivisionByZero, where the handler ended its transaction.
func (s *TransactionalStore) addKeep(b *steps, a *attempt, r *store.CompleteRequest) {
	numbers := appendInt4(make([]byte, 0, 4+8+intervalSize+8+8+8), a.number)
	numbers = appendInt8(numbers, a.fence)
	numbers = appendInterval(numbers, r.Retention)
	numbers = appendTimestamp(numbers, a.claimedAt)
	numbers = appendTimestamp(numbers, a.beganAt)
	numbers = appendInt8(numbers, a.replaced)
	attempt, fence, retention := numbers[:4], numbers[4:12], numbers[12:12+intervalSize]
	numbers = numbers[12+intervalSize:]
	claimedAt, beganAt, replaced := numbers[:8], numbers[8:16], numbers[16:]
	if r.DiscardEffects {
		beganAt = nil
	}
	values := [][]byte{
		a.id[:], a.owner[:], a.fingerprint[:], attempt, fence, notNull(r.Payload), retention, []byte(a.label), claimedAt, beganAt,
	}
	if !a.replaces {
		b.add(s.sql.keep, nil, values...)
		return
	}
	if beganAt != nil {
		b.add(s.sql.same, nil, beganAt)
	}
	values[9] = replaced
	b.add(s.sql.replace, nil, values...)
}

// commitSQLTx is commit for a transaction that database/sql began and has to commit:
// from then on database/sql refuses whatever the handler still does with it.
func (s *TransactionalStore) commitSQLTx(ctx context.Context, a *attempt, r *store.CompleteRequest) error {
	var batch steps
	s.addKeep(&batch, a, r)
	if err := s.send(ctx, a, &batch); err != nil {
		if batch.done == 0 && hasCode(err, codeDivisionByZero) {
			return errEndedByHandler
		}
		return notApplied(err.Error()) // COMMIT was not sent
	}
	var err error
	a.inSQL(func() { err = a.sqlTx.Commit() })
	confirmed := true
	_ = a.session.do(func(conn *pgx.Conn) error { confirmed = !unconfirmed(conn); return nil })
	switch {
	case !confirmed:
		return notReplicated("complete")
	case errors.Is(err, pgx.ErrTxCommitRollback):
		return notApplied("the server answered COMMIT with ROLLBACK")
	}
	return failCommit(err, 0, 0, 0)
}

// ready looks whether there is a transaction to commit.
func (a *attempt) ready(conn *pgx.Conn, discard bool) error {
	status := conn.PgConn().TxStatus()
	switch {
	case a.expired.Load():
		return notApplied("the attempt outlasted TxTimeout")
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

// addDiscard undoes the effects of the handler, as the first steps of the batch where
// that is possible: a failed transaction takes no other statement, not even its
// preparation, and a transaction of database/sql has to be ended there. It returns how
// many of the steps find out whether the handler ended the transaction.
func (s *TransactionalStore) addDiscard(ctx context.Context, a *attempt, b *steps, failed bool) (own int, err error) {
	beganAt := appendTimestamp(nil, a.beganAt)
	if a.sqlTx == nil && !failed {
		b.add(s.sql.same, nil, beganAt)
		b.add(s.sql.rollback, nil)
		return 1, nil
	}
	if !failed {
		var check steps
		check.add(s.sql.same, nil, beganAt)
		if err := s.send(ctx, a, &check); err != nil {
			return 0, failCommit(err, 0, 1, 1)
		}
	}
	if err := a.rollback(ctx); err != nil {
		return 0, notApplied("the effects could not be undone: " + err.Error())
	}
	return 0, nil
}

// failCommit classifies the failure of the batch that ends in COMMIT. So many of its
// steps succeeded; the first own of them look whether the transaction still is the one
// that the claim began, and those up to kept are before COMMIT.
func failCommit(err error, steps, own, kept int) error {
	var serverErr *pgconn.PgError
	switch {
	case err == nil:
		return nil
	case hasCode(err, codeNoTx), hasCode(err, codeDivisionByZero) && steps < own:
		return errEndedByHandler
	case hasCode(err, codeDivisionByZero, codeTaken) && steps < kept:
		return notApplied("another attempt has the record")
	case hasCode(err, codeIdleTimeout):
		return notApplied("the server ended the session of an idle owner")
	case errors.As(err, &serverErr) && undone(serverErr):
		return notApplied(err.Error())
	}
	return fmt.Errorf("%w: postgres: complete: %s", store.ErrUnknown, err.Error()) // whatever it says of having been sent: see class
}

func notApplied(why string) error {
	return fmt.Errorf("%w: postgres: complete: %s", store.ErrNotApplied, why)
}

// errEndedByHandler is misuse that was found too late to undo.
var errEndedByHandler = fmt.Errorf("%w: postgres: complete: the handler ended the transaction of its attempt; leave COMMIT and ROLLBACK to the store",
	store.ErrMisconfigured)
