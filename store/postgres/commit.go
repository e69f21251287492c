package reprisepg

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	reprise "github.com/reprise-go/reprise/core"
)

// commit keeps the response and commits, in one round trip over a pgx pool. Its error
// wraps ErrNotApplied only where the COMMIT was never sent or the server refused it,
// and ErrUnknown where it may have been executed.
func (s *TransactionalStore) commit(ctx context.Context, a *attempt, r reprise.CompleteRequest) error {
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
	keep := []any{a.id[:], a.owner[:], a.fingerprint[:], a.number, a.fence, notNull(r.Payload), microseconds(r.Retention), a.replaced}
	if a.sqlTx != nil && !r.DiscardEffects {
		return s.commitSQLTx(ctx, a, keep)
	}
	var (
		batch pgx.Batch
		tag   pgconn.CommandTag
	)
	if r.DiscardEffects {
		if err := a.queueDiscard(ctx, &batch, failed); err != nil {
			return err
		}
		// The lock was free for a moment. Where another attempt has it now, or already
		// completed the record, keep fails.
		batch.Queue(s.beginSQL())
		batch.Queue(s.sql.open, s.lockKey(a.id), s.config.TxTimeout.Milliseconds(), a.owner[:])
	}
	batch.Queue(s.sql.keep, keep...)
	batch.Queue("COMMIT").Exec(func(t pgconn.CommandTag) error { tag = t; return nil })
	err = a.session.do(func(conn *pgx.Conn) error {
		err := send(ctx, conn, &batch)
		if unconfirmed(conn) {
			return notReplicated("complete")
		}
		return failCommit(err, r.DiscardEffects)
	})
	if err == nil && tag.String() != "COMMIT" {
		return notApplied("the server answered COMMIT with " + tag.String())
	}
	return err
}

// commitSQLTx is commit for a transaction that database/sql began and has to commit:
// from then on database/sql refuses whatever the handler still does with it.
func (s *TransactionalStore) commitSQLTx(ctx context.Context, a *attempt, keep []any) error {
	var batch pgx.Batch
	batch.Queue(s.sql.keep, keep...)
	if err := a.send(ctx, &batch); err != nil {
		if hasCode(err, codeEnded) {
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
	return failCommit(err, false)
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

// marked fails, with codeNotMarked, unless the transaction is the one that the claim
// began.
const marked = "SELECT 1 / (current_setting('reprise.attempt', true) IS NOT DISTINCT FROM $1::text)::integer"

// queueDiscard undoes the effects of the handler, as the first steps of batch where
// that is possible: a failed transaction takes no other statement, not even its
// preparation, and a transaction of database/sql has to be ended there.
func (a *attempt) queueDiscard(ctx context.Context, batch *pgx.Batch, failed bool) error {
	mark := hex.EncodeToString(a.owner[:])
	if a.sqlTx == nil && !failed {
		batch.Queue(marked, mark)
		batch.Queue("ROLLBACK")
		return nil
	}
	if !failed {
		var check pgx.Batch
		check.Queue(marked, mark)
		if err := a.send(ctx, &check); err != nil {
			return failCommit(err, true)
		}
	}
	if err := a.rollback(ctx); err != nil {
		return notApplied("the effects could not be undone: " + err.Error())
	}
	return nil
}

// failCommit classifies the failure of the batch that ends in COMMIT.
func failCommit(err error, discard bool) error {
	var serverErr *pgconn.PgError
	switch {
	case err == nil:
		return nil
	case hasCode(err, codeNoTx, codeNotMarked), hasCode(err, codeEnded) && !discard:
		return errEndedByHandler
	case hasCode(err, codeTaken, codeEnded):
		return notApplied("another attempt has the record")
	case hasCode(err, codeIdleTimeout):
		return notApplied("the server ended the session of an idle owner")
	case errors.As(err, &serverErr) && undone(serverErr):
		return notApplied(err.Error())
	}
	return fmt.Errorf("%w: postgres: complete: %s", reprise.ErrUnknown, err.Error()) // whatever it says of having been sent: see class
}

func notApplied(why string) error {
	return fmt.Errorf("%w: postgres: complete: %s", reprise.ErrNotApplied, why)
}

// errEndedByHandler is misuse that was found too late to undo.
var errEndedByHandler = fmt.Errorf("%w: postgres: complete: the handler ended the transaction of its attempt; leave COMMIT and ROLLBACK to the store",
	reprise.ErrMisconfigured)

// ignoreTag is what send does with the result of a step that nobody reads.
func ignoreTag(pgconn.CommandTag) error { return nil }
