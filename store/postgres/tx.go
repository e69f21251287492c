package reprisepg

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	reprise "github.com/reprise-go/reprise/core"
)

// ErrTxManaged is what Commit and Rollback of the transaction of an attempt return, having done nothing: the store commits it with the
// response, or rolls it back.
var ErrTxManaged = errors.New("reprisepg: the transaction of an attempt is ended by the store, with the response; use Begin for a part that may be rolled back")

// Tx returns the transaction of the attempt that ctx belongs to, and false where there is none: outside a handler, on a route
// without the middleware or without a key, or with a store that is not transactional. ctx may be
// the context of the handler's framework, see [reprise.ContextKey].
//
// What is written through it commits together with the stored response. Its Commit and Rollback are refused with [ErrTxManaged], so
// that a deferred Rollback does no harm; Begin opens a savepoint, which may be committed and rolled back. It is READ COMMITTED, it
// is not safe for concurrent use, and it ends with the handler. To end it by SQL text is misuse, which Complete answers
// with ErrMisconfigured.
func Tx(ctx context.Context) (pgx.Tx, bool) {
	tx, ok := ctx.Value(txKey{}).(*handlerTx)
	if !ok {
		run, found := reprise.RunContext(ctx)
		if !found {
			return nil, false
		}
		if tx, ok = run.Value(txKey{}).(*handlerTx); !ok {
			return nil, false
		}
	}
	return tx, true
}

// txKey is the key of the transaction in the handler's context.
type txKey struct{}

// handlerTx is the transaction of an attempt as its handler sees it, or a savepoint in it. Once the attempt has ended it refuses
// everything that asks the server, because its connection may be serving somebody else.
type handlerTx struct {
	pgx.Tx               // does the work
	ended   *atomic.Bool // the attempt has
	managed bool         // the transaction itself, which the store ends
}

// Begin opens a savepoint.
func (t *handlerTx) Begin(ctx context.Context) (pgx.Tx, error) {
	if t.ended.Load() {
		return nil, pgx.ErrTxClosed
	}
	nested, err := t.Tx.Begin(ctx)
	if err != nil {
		return nil, err
	}
	return &handlerTx{Tx: nested, ended: t.ended}, nil
}

// Commit releases a savepoint, and is refused for the transaction itself.
func (t *handlerTx) Commit(ctx context.Context) error {
	switch {
	case t.managed:
		return ErrTxManaged
	case t.ended.Load():
		return pgx.ErrTxClosed
	}
	return t.Tx.Commit(ctx)
}

// Rollback returns to a savepoint, and is refused for the transaction itself.
func (t *handlerTx) Rollback(ctx context.Context) error {
	switch {
	case t.managed:
		return ErrTxManaged
	case t.ended.Load():
		return pgx.ErrTxClosed
	}
	return t.Tx.Rollback(ctx)
}

func (t *handlerTx) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	if t.ended.Load() {
		return pgconn.CommandTag{}, pgx.ErrTxClosed
	}
	return t.Tx.Exec(ctx, sql, args...)
}

func (t *handlerTx) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	if t.ended.Load() {
		return closedResults().Query()
	}
	return t.Tx.Query(ctx, sql, args...)
}

func (t *handlerTx) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	if t.ended.Load() {
		return closedResults().QueryRow()
	}
	return t.Tx.QueryRow(ctx, sql, args...)
}

func (t *handlerTx) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	if t.ended.Load() {
		return pgx.FailedBatchResults(b, pgx.ErrTxClosed)
	}
	return t.Tx.SendBatch(ctx, b)
}

func (t *handlerTx) Prepare(ctx context.Context, name, sql string) (*pgconn.StatementDescription, error) {
	if t.ended.Load() {
		return nil, pgx.ErrTxClosed
	}
	return t.Tx.Prepare(ctx, name, sql)
}

func (t *handlerTx) CopyFrom(ctx context.Context, table pgx.Identifier, columns []string, rows pgx.CopyFromSource) (int64, error) {
	if t.ended.Load() {
		return 0, pgx.ErrTxClosed
	}
	return t.Tx.CopyFrom(ctx, table, columns, rows)
}

// closedResults answers every query with ErrTxClosed.
func closedResults() pgx.BatchResults {
	return pgx.FailedBatchResults(&pgx.Batch{}, pgx.ErrTxClosed)
}
