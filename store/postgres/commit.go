package reprisepg

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	reprise "github.com/reprise-go/reprise/core"
)

// commit keeps the answer and commits, in one round trip. Its error wraps ErrNotApplied only where the COMMIT was never sent or the
// server refused it, and ErrUnknown where it may have been executed.
func (a *attempt) commit(ctx context.Context, sql *statements, r reprise.CompleteRequest) error {
	a.watchdog.Stop() // from here on ctx is the bound
	conn := a.conn.Conn()
	if err := a.ready(ctx, conn, r.DiscardEffects); err != nil {
		return err
	}
	unconfirmed(conn) // what others left on it
	var (
		batch pgx.Batch
		tag   pgconn.CommandTag
	)
	if r.DiscardEffects {
		batch.Queue("ROLLBACK TO SAVEPOINT " + savepoint)
	} else {
		batch.Queue("RELEASE SAVEPOINT " + savepoint)
	}
	batch.Queue(sql.keep, a.id[:], a.owner[:], a.fingerprint[:], a.number, a.fence, notNull(r.Payload), microseconds(r.Retention), a.replaced)
	batch.Queue("COMMIT").Exec(func(t pgconn.CommandTag) error { tag = t; return nil })
	_, err := send(ctx, conn, &batch)
	switch {
	case unconfirmed(conn):
		return fmt.Errorf("%w: complete: the wait for the synchronous standby was cancelled", reprise.ErrNotReplicated)
	case err != nil:
		return failCommit(err)
	case tag.String() != "COMMIT":
		return notApplied("the server answered COMMIT with " + tag.String())
	}
	return nil
}

// ready looks whether there is a transaction to commit.
func (a *attempt) ready(ctx context.Context, conn *pgx.Conn, discard bool) error {
	const idle, failed = 'I', 'E'
	status := conn.PgConn().TxStatus()
	switch {
	case a.expired.Load():
		return notApplied("the attempt outlasted TxTimeout")
	case conn.IsClosed():
		return notApplied("the connection ended before COMMIT was sent")
	case conn.PgConn().IsBusy():
		return notApplied("the handler left a result open")
	case status == idle:
		return errEndedByHandler
	case status == failed && !discard:
		return notApplied("a statement of the handler failed, and with it its transaction")
	case status == failed:
		// By itself: a failed transaction takes no other statement, not even its preparation.
		if _, err := conn.Exec(ctx, "ROLLBACK TO SAVEPOINT "+savepoint); err != nil {
			if hasCode(err, codeNoSavepoint) {
				return errEndedByHandler
			}
			return notApplied("the effects could not be undone: " + err.Error())
		}
	}
	return nil
}

// failCommit places the failure of the batch that ends in COMMIT.
func failCommit(err error) error {
	var pgErr *pgconn.PgError
	switch {
	case hasCode(err, codeNoSavepoint, codeNoTx):
		return errEndedByHandler
	case hasCode(err, codeTaken):
		return notApplied("another attempt has the record")
	case hasCode(err, codeIdleTimeout):
		return notApplied("the server ended the session of an idle owner")
	case errors.As(err, &pgErr) && undone(pgErr):
		return notApplied(err.Error())
	}
	return fmt.Errorf("%w: complete: %s", reprise.ErrUnknown, err.Error()) // whatever it says of having been sent: see class
}

func notApplied(why string) error {
	return fmt.Errorf("%w: complete: %s", reprise.ErrNotApplied, why)
}

// errEndedByHandler is misuse that was found too late to undo.
var errEndedByHandler = fmt.Errorf("%w: complete: the handler ended the transaction of its attempt by itself", reprise.ErrMisconfigured)

// rollback undoes the effects. Where it fails the connection is closed, and the server undoes them when it notices.
func (a *attempt) rollback(ctx context.Context) error {
	a.watchdog.Stop()
	if a.expired.Load() || a.conn.Conn().IsClosed() {
		return nil
	}
	if err := a.tx.Tx.Rollback(ctx); err != nil && !errors.Is(err, pgx.ErrTxClosed) {
		return fmt.Errorf("%w: release: %s", reprise.ErrUnknown, err.Error())
	}
	return nil
}

// send executes a batch in one round trip. Each step is given something to do with its result, because pgx reports the first error of a
// batch only from a step that has.
func send(ctx context.Context, conn *pgx.Conn, batch *pgx.Batch) (pgx.BatchResults, error) {
	for _, step := range batch.QueuedQueries {
		if step.Fn == nil {
			step.Exec(func(pgconn.CommandTag) error { return nil })
		}
	}
	results := conn.SendBatch(ctx, batch)
	return results, results.Close()
}
