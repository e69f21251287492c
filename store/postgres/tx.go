package reprisepg

import (
	"context"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/reprise-go/reprise/store/internal/sqltx"
)

// handlerTx is the transaction of an attempt as its handler sees it, or a savepoint in
// it. Once the attempt has ended, it refuses every call that needs the server, because
// its connection may be serving another request.
type handlerTx struct {
	attempt   *session
	savepoint string      // empty for the transaction itself, which the store ends
	closed    atomic.Bool // the savepoint was committed or rolled back
}

// conn returns the connection, or ErrTxClosed.
func (t *handlerTx) conn() (*pgx.Conn, error) {
	if t.closed.Load() || t.attempt.ended.Load() {
		return nil, pgx.ErrTxClosed
	}
	return t.attempt.conn.Conn, nil
}

// Begin opens a savepoint.
func (t *handlerTx) Begin(ctx context.Context) (pgx.Tx, error) {
	conn, err := t.conn()
	if err != nil {
		return nil, err
	}
	nested := &handlerTx{
		attempt:   t.attempt,
		savepoint: "reprise_sp_" + strconv.FormatInt(t.attempt.savepoints.Add(1), 10),
	}
	if _, err := conn.Exec(ctx, "SAVEPOINT "+nested.savepoint); err != nil {
		return nil, err
	}
	return nested, nil
}

// Commit releases a savepoint, and is refused for the transaction itself.
func (t *handlerTx) Commit(ctx context.Context) error {
	return t.end(ctx, "RELEASE SAVEPOINT ")
}

// Rollback returns to a savepoint, and is refused for the transaction itself.
func (t *handlerTx) Rollback(ctx context.Context) error {
	return t.end(ctx, "ROLLBACK TO SAVEPOINT ")
}

func (t *handlerTx) end(ctx context.Context, statement string) error {
	if t.savepoint == "" {
		return sqltx.ErrManaged
	}
	conn, err := t.conn()
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, statement+t.savepoint)
	t.closed.Store(true)
	return err
}

// Exec is [pgx.Conn.Exec] in the transaction.
func (t *handlerTx) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	conn, err := t.conn()
	if err != nil {
		return pgconn.CommandTag{}, err
	}
	return conn.Exec(ctx, sql, args...)
}

// Query is [pgx.Conn.Query] in the transaction.
func (t *handlerTx) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	conn, err := t.conn()
	if err != nil {
		return closedRows{}, err
	}
	return conn.Query(ctx, sql, args...)
}

// QueryRow is [pgx.Conn.QueryRow] in the transaction.
func (t *handlerTx) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	conn, err := t.conn()
	if err != nil {
		return closedRows{}
	}
	return conn.QueryRow(ctx, sql, args...)
}

// SendBatch is [pgx.Conn.SendBatch] in the transaction.
func (t *handlerTx) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	conn, err := t.conn()
	if err != nil {
		return closedBatch{}
	}
	return conn.SendBatch(ctx, b)
}

// Prepare is [pgx.Conn.Prepare].
func (t *handlerTx) Prepare(ctx context.Context, name, sql string) (*pgconn.StatementDescription, error) {
	conn, err := t.conn()
	if err != nil {
		return nil, err
	}
	return conn.Prepare(ctx, name, sql)
}

// CopyFrom is [pgx.Conn.CopyFrom] in the transaction.
func (t *handlerTx) CopyFrom(ctx context.Context, table pgx.Identifier, columns []string, rows pgx.CopyFromSource) (int64, error) {
	conn, err := t.conn()
	if err != nil {
		return 0, err
	}
	return conn.CopyFrom(ctx, table, columns, rows)
}

// LargeObjects is the one method that costs an extra round trip, because pgx makes the
// value only for a transaction that it began. The BEGIN only leaves a warning in the log
// of the server. If it fails, the connection is lost, and the value is useless.
func (t *handlerTx) LargeObjects() pgx.LargeObjects {
	conn, err := t.conn()
	if err != nil {
		return pgx.LargeObjects{}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	tx, err := conn.Begin(ctx)
	if err != nil {
		return pgx.LargeObjects{}
	}
	return tx.LargeObjects()
}

// Conn returns the connection of the transaction, or nil once the attempt has ended.
func (t *handlerTx) Conn() *pgx.Conn {
	conn, _ := t.conn()
	return conn
}
