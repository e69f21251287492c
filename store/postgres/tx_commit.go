package reprisepg

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/internal/lazytx"
	"github.com/reprise-go/reprise/store/internal/sqlstore"
)

// Commit implements [lazytx.Session]: the completion and COMMIT are one round trip.
func (t *session) Commit(ctx context.Context, r *store.CompleteRequest) (err error) {
	defer func() {
		if err != nil {
			_ = t.Rollback(ctx) // so that its locks are free before the answer is sent
		}
	}()
	if err := t.ready(ctx); err != nil {
		return err
	}
	s, conn := t.table, t.conn.Conn
	unconfirmed(conn) // forget the mark of earlier statements
	done, tag, err := send(ctx, conn, t.prepared,
		statementCall{text: s.statements.same, args: []any{t.beganAt}},
		statementCall{text: s.statements.completeInTx, args: completionArgs(r)},
		statementCall{text: commitTx})
	if unconfirmed(conn) {
		return notReplicated("complete")
	}
	if t.prepared && notPrepared(err) {
		s.stopPreparing(ctx, err) // without a second try: it undid the writes of the handler
	}
	if err == nil && tag.String() != "COMMIT" {
		return lazytx.NotApplied(storeName, "the server answered COMMIT with "+tag.String())
	}
	return failCommit(err, done)
}

// ready returns an error if there is no transaction to commit.
func (t *session) ready(ctx context.Context) error {
	busy := t.conn.PgConn().IsBusy()
	t.takeBack(ctx)
	status := t.conn.PgConn().TxStatus()
	switch {
	case status == txIdle:
		return lazytx.EndedByHandler(storeName)
	case busy:
		return lazytx.NotApplied(storeName, "the handler left a result open; read or close it before the handler returns")
	case t.conn.IsClosed():
		return lazytx.NotApplied(storeName, "the connection ended before COMMIT was sent")
	case status == txFailed:
		return cmp.Or(t.Rollback(ctx), lazytx.NotApplied(storeName, "a statement of the handler failed, and with it its transaction"))
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
	case hasCode(err, codeDivisionByZero) && done == 0:
		return lazytx.EndedByHandler(storeName)
	case hasCode(err, codeDivisionByZero) && done == 1:
		return sqlstore.Lost(storeName, "complete")
	case hasCode(err, codeIdleTimeout):
		return lazytx.NotApplied(storeName, "the server ended the session of an idle owner")
	case errors.As(err, &serverErr) && undone(serverErr):
		return lazytx.NotApplied(storeName, err.Error())
	}
	return fmt.Errorf("%w: postgres: complete: %s", store.ErrUnknown, err.Error()) // even if it says that it was not sent: see classify
}
