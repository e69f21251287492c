package reprisepg

import (
	"context"
	"database/sql"

	"github.com/jackc/pgx/v5"

	"github.com/reprise-go/reprise/store/postgres/internal/leased"
	"github.com/reprise-go/reprise/store/postgres/internal/transactional"
)

// ErrTxManaged is returned by Commit and Rollback of the transaction of an attempt, which
// have no effect: the store commits it with the response, or rolls it back.
var ErrTxManaged = transactional.ErrTxManaged

// Tx returns the transaction of the attempt that ctx belongs to. It returns false where
// there is none: outside a handler, on a route without the middleware or without a key,
// with a store that is not transactional, or with one over a *sql.DB (see [SQLTx]). ctx
// may be the context of the handler's framework, see [store.ContextKey].
//
// Writes through it commit together with the stored response. Its Commit and Rollback do
// nothing but return [ErrTxManaged], so a deferred Rollback does no harm; Begin opens a
// savepoint, which may be committed and rolled back. Its isolation level is
// [Config.Isolation]. It is not safe for concurrent use, and it ends with the handler. Do
// not end it by executing COMMIT or ROLLBACK as SQL: Complete then answers
// ErrMisconfigured.
func Tx(ctx context.Context) (pgx.Tx, bool) { return transactional.Tx(ctx) }

// SQLTx is [Tx] for a store over a *sql.DB: see [NewTransactionalSQL]. It returns the
// same *sql.Tx at every call.
//
// Writes through it commit together with the stored response. Do not call its Commit or
// Rollback: a store cannot refuse them in database/sql, only detect them. A Rollback
// undoes the attempt. A Commit makes the effects permanent without the response, and
// Complete answers ErrMisconfigured. Use a SAVEPOINT for a part that may be rolled back.
func SQLTx(ctx context.Context) (*sql.Tx, bool) { return transactional.SQLTx(ctx) }

// InTx completes the operation of the handler with this context inside tx, a
// transaction of the handler's own on the database of the [Store]. The payload becomes
// the answer to every retry exactly when tx commits, together with whatever else was
// written in tx: exactly-once effects, with the connection held only for as long as the
// handler needs its transaction. For a handler behind the package protocol,
// protocol.Payload makes the payload of a response.
//
// Call it once, as the last statement before Commit, and roll back after any error.
// ErrLeaseLost says that another attempt owns the operation, so the effects of tx must
// not stay. ErrInvalid says that ctx has no attempt of a [Store].
//
// From then until the end of tx the record is locked, so no process takes the operation
// over, however long the commit takes, and duplicates are answered InProgress at once.
// The client of this attempt gets the stored response, even if the handler writes another
// one. A COMMIT whose answer is lost may have been executed: return an error then, and
// the client's retry gets the right answer.
//
// In a transaction stricter than READ COMMITTED, InTx fails with ErrUnavailable if the
// lease was renewed since the transaction began, as it would after any concurrent update.
func InTx(ctx context.Context, tx pgx.Tx, payload []byte) error {
	return leased.InTx(ctx, tx, payload)
}

// InSQLTx is [InTx] for a transaction of database/sql, over pgx's driver.
func InSQLTx(ctx context.Context, tx *sql.Tx, payload []byte) error {
	return leased.InSQLTx(ctx, tx, payload)
}
