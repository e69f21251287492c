package reprisemysql

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
// has lost its record to another one by then, everything is rolled back. Its isolation
// level is READ COMMITTED, whatever that of the session is. Once the handler has called
// its Commit or Rollback, which return [ErrTxManaged] and have no effect on the server,
// database/sql refuses further statements, so a deferred Rollback does no harm. Use a
// SAVEPOINT for a part that may be rolled back. It is not safe for concurrent use, and it
// ends with the handler.
//
// Do not end it by executing COMMIT or ROLLBACK as SQL, nor by a statement that commits
// implicitly, such as CREATE TABLE: nothing can say then whether the effects stay, so
// that the client and its retries get 409 outcome-unknown. After some errors, such as a
// deadlock (1213), or a lock wait timeout where innodb_rollback_on_timeout is set, the
// server has rolled the whole transaction back: its further statements fail, and the
// client gets 503 not-applied and may retry.
//
// At most two transactions less than the pool has connections are open at once, or one in
// a pool of two or three; further calls wait in line, until ctx ends or
// [Config.TxTimeout] has passed. The error is then ErrBusy, and that of the server where
// it could not begin. It is ErrInvalid where ctx has no transaction.
func Tx(ctx context.Context) (*sql.Tx, error) { return dialect.SQLTx(ctx) }
