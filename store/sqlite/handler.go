package reprisesqlite

import (
	"context"
	"database/sql"

	"github.com/reprise-go/reprise/store/internal/sqltx"
)

// ErrTxManaged is returned by Commit and Rollback of the transaction of an attempt, which
// have no effect: the store commits it with the response, or rolls it back.
var ErrTxManaged = sqltx.ErrManaged

// Tx returns the transaction of the attempt that ctx belongs to, and begins it at its
// first call in the attempt. ctx may be the context of the handler's framework, see
// [store.ContextKey]. It returns the same *sql.Tx at every call.
//
// Writes through it commit together with the stored response, or not at all: over any
// number of retries, crashes and takeovers their effects happen once. Where the attempt
// has lost its record to another one by then, everything is rolled back. Once the handler
// has called its Commit or Rollback, which return [ErrTxManaged] and have no effect on
// the file, database/sql refuses further statements, so a deferred Rollback does no harm.
// Use a SAVEPOINT for a part that may be rolled back. It is not safe for concurrent use,
// and it ends with the handler.
//
// Do not end it by executing COMMIT or ROLLBACK as SQL, nor by a constraint or trigger
// with ROLLBACK: nothing can say then whether the effects stay, so that the client and
// its retries get 409 outcome-unknown, and another attempt may run once its lease has
// ended. After some errors, such as a full disk or a write whose context ended, SQLite
// has rolled it back: further statements fail, and the client gets 503 not-applied.
//
// SQLite has one writer at a time, which the transaction is from the first call of Tx to
// the end of the handler, unless SQLite rolls it back before. So call Tx after what takes
// long, such as a call of another service, and write through the transaction only: a
// write through the *sql.DB would wait for the handler that makes it. Further calls of
// this process wait in line, until ctx ends or [Config.TxTimeout] has passed, and those
// of other processes in no particular order. The error is then ErrBusy. It is ErrInvalid
// where ctx has no transaction.
func Tx(ctx context.Context) (*sql.Tx, error) { return dialect.SQLTx(ctx) }
