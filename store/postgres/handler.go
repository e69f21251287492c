package reprisepg

import (
	"context"
	"database/sql"

	"github.com/jackc/pgx/v5"

	"github.com/reprise-go/reprise/store/internal/lazytx"
	"github.com/reprise-go/reprise/store/internal/sqltx"
)

// ErrTxManaged is returned by Commit and Rollback of the transaction of an attempt, which
// have no effect: the store commits it with the response, or rolls it back.
var ErrTxManaged = sqltx.ErrManaged

// Tx returns the transaction of the attempt that ctx belongs to, and begins it at its
// first call in the attempt. ctx may be the context of the handler's framework, see
// [store.ContextKey].
//
// Writes through it commit together with the stored response, or not at all: over any
// number of retries, crashes and takeovers their effects happen once. Where the attempt
// has lost its record to another one by then, everything is rolled back. Its isolation
// level is READ COMMITTED. Its Commit and Rollback do nothing but return [ErrTxManaged],
// so a deferred Rollback does no harm; Begin opens a savepoint, which may be committed
// and rolled back. It is not safe for concurrent use, and it ends with the handler. Do
// not end it by executing COMMIT or ROLLBACK as SQL: nothing can say then whether the
// effects stay, so that the client and its retries get 409 outcome-unknown.
//
// At most MaxConns − 2 transactions are open at once, or one in a pool of two; further
// calls wait in line, until ctx ends or [Config.TxTimeout] has passed. The error is then
// ErrBusy, and that of the server where it could not begin. It is ErrInvalid where there
// is no transaction: see [SQLTx] for a store over a *sql.DB.
func Tx(ctx context.Context) (pgx.Tx, error) {
	t, err := begin(ctx, false)
	if err != nil {
		return nil, err
	}
	return &handlerTx{attempt: t}, nil
}

// SQLTx is [Tx] for a store over a *sql.DB: see [Pool]. It returns the same *sql.Tx at
// every call. Once the handler has called its Commit or Rollback, which have no effect on
// the server, database/sql refuses further statements. Use a SAVEPOINT for a part that
// may be rolled back.
func SQLTx(ctx context.Context) (*sql.Tx, error) {
	t, err := begin(ctx, true)
	if err != nil {
		return nil, err
	}
	return t.tx, nil
}

func begin(ctx context.Context, overSQL bool) (*session, error) {
	began, err := lazytx.Begin(ctx, storeName)
	if err != nil {
		return nil, err
	}
	s := began.(*session) //nolint:forcetypeassert // there is no other of this name
	switch stored := s.table.db.sql != nil; {
	case stored && !overSQL:
		return nil, invalid("the store is over a *sql.DB; call SQLTx")
	case !stored && overSQL:
		return nil, invalid("the store is over a pgx pool; call Tx")
	}
	return s, nil
}
