package reprisepg

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/internal/lazytx"
	"github.com/reprise-go/reprise/store/internal/sqlstore"
	"github.com/reprise-go/reprise/store/postgres/internal/wire"
)

// Commit implements [lazytx.Session]: the completion and COMMIT are one round trip.
func (t *session) Commit(ctx context.Context, r *store.CompleteRequest) (err error) {
	defer func() {
		if err != nil {
			_ = t.undo(ctx) // so that its locks are free before the answer is sent
		}
	}()
	if err := t.ready(ctx); err != nil {
		return err
	}
	s, conn := t.table, t.conn
	wire.Unconfirmed(conn) // forget the mark of earlier statements
	sent, err := wire.Send(ctx, conn, t.prepared,
		s.statements.same.Call(nil, t.beganAt),
		s.statements.completeInTx.Call(nil, completionArgs(r)...),
		s.statements.commit.Call(nil))
	if wire.Unconfirmed(conn) {
		return notReplicated("complete")
	}
	if t.prepared && wire.NotPrepared(err) {
		s.sender.GiveUp(ctx, err) // without a second try: it undid the writes of the handler
	}
	if err == nil && sent.Tag.String() != "COMMIT" {
		return lazytx.NotApplied(storeName, "the server answered COMMIT with "+sent.Tag.String())
	}
	return failCommit(err, sent.Done)
}

// ready returns an error if there is no transaction to commit.
func (t *session) ready(ctx context.Context) error {
	busy := t.conn.PgConn().IsBusy()
	t.takeBack(ctx)
	status := t.conn.PgConn().TxStatus()
	switch {
	case busy:
		return lazytx.NotApplied(storeName, "the handler left a result open; read or close it before the handler returns")
	case t.conn.IsClosed():
		return lazytx.NotApplied(storeName, "the connection ended before COMMIT was sent")
	case status == txIdle:
		return lazytx.EndedByHandler(storeName)
	case status == txFailed:
		return lazytx.NotApplied(storeName, "a statement of the handler failed, and with it its transaction")
	}
	return nil
}

// failCommit classifies the failure of the batch, of which so many calls succeeded. The
// first finds out whether the transaction is still the one that began, and the second
// completes the record.
func failCommit(err error, done int) error {
	var serverErr *pgconn.PgError
	switch {
	case err == nil:
		return nil
	case wire.HasCode(err, wire.CodeDivisionByZero) && done == 0:
		return lazytx.EndedByHandler(storeName)
	case wire.HasCode(err, wire.CodeDivisionByZero) && done == 1:
		return sqlstore.Lost(storeName, "complete")
	case wire.HasCode(err, wire.CodeIdleTimeout):
		return lazytx.NotApplied(storeName, "the server ended the session of an idle owner")
	case errors.As(err, &serverErr) && wire.Undone(serverErr):
		return lazytx.NotApplied(storeName, err.Error())
	}
	return fmt.Errorf("%w: postgres: complete: %s", store.ErrUnknown, err.Error()) // even if it says that it was not sent: see class in package wire
}

// Find implements [lazytx.Session], by another connection. It waits for the transaction
// that holds the record, and reads it then. A record that is still in progress is deleted
// under the same lock, because the server may not have begun the batch of the COMMIT yet:
// now that finds no record, and rolls back.
func (t *session) Find(ctx context.Context) error {
	held, err := t.table.db.Hold(ctx, "complete")
	if err != nil {
		return lazytx.Undecided(storeName, err.Error())
	}
	defer held.Release()
	s, conn := t.table, held.Conn
	state := int16(-1)
	wire.Unconfirmed(conn) // forget the mark of earlier statements
	sent, err := wire.Send(ctx, conn, false,
		s.statements.begin.Call(nil),
		s.statements.waitForLock.Call(nil, milliseconds(lazytx.FindWait(ctx))),
		s.statements.again.Call(func(row *wire.Row) { state = row.Smallint() }, t.id[:], t.owner[:]),
		s.statements.forget.Call(nil, t.id[:], t.owner[:]),
		s.statements.commit.Call(nil))
	switch {
	case wire.Unconfirmed(conn):
		return notReplicated("complete")
	case err != nil:
		return lazytx.Undecided(storeName, err.Error())
	case sent.Tag.String() != "COMMIT":
		return lazytx.Undecided(storeName, "the transaction that looked for the record was rolled back")
	case state == sqlstore.Completed:
		return nil
	case state == sqlstore.Running:
		return lazytx.NotApplied(storeName, "the connection was lost, and the server rolled back")
	}
	return lazytx.Undecided(storeName, "the record is not this owner's any more")
}
