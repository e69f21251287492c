// Package sqltx hands a connection that is in a transaction to a handler as a *sql.Tx
// that cannot end it: its Commit and Rollback have no effect on the server, so that the
// habit of a deferred Rollback does no harm.
package sqltx

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"sync/atomic"
)

// ErrManaged is the error of Commit and Rollback of a [Lent] transaction.
var ErrManaged = errors.New("reprise: the store commits or rolls back the transaction of an attempt, together with the response")

// Lent is a connection that is lent to a handler.
type Lent struct {
	Tx *sql.Tx

	db     *sql.DB
	closed atomic.Bool
}

// Lend returns conn as a transaction of database/sql. The caller has begun it, and ends
// it after [Lent.Close].
func Lend(conn driver.Conn) (*Lent, error) {
	l := &Lent{}
	l.db = sql.OpenDB(connector{conn, &l.closed})
	var err error
	if l.Tx, err = l.db.BeginTx(context.Background(), nil); err != nil {
		_ = l.db.Close()
		return nil, err
	}
	return l, nil
}

// Refuse makes the calls that the handler still makes fail. It does not wait for those
// that are on their way.
func (l *Lent) Refuse() { l.closed.Store(true) }

// Close takes the connection back: it waits for a statement of the handler that is on its
// way, and closes the results that it left open.
func (l *Lent) Close() {
	l.Refuse()
	_ = l.Tx.Rollback() // of no effect on the server
	_ = l.db.Close()
}

// connector is the [driver.Connector] of the one connection. It must not have the methods
// of that: Close of a [sql.DB] calls the Close of its connector.
type connector struct {
	lent   driver.Conn
	closed *atomic.Bool
}

// Connect implements [driver.Connector].
func (c connector) Connect(context.Context) (driver.Conn, error) { return &conn{c}, nil }

// Driver implements [driver.Connector].
func (c connector) Driver() driver.Driver { return nil }

// conn forwards statements to the connection, until it is closed.
type conn struct{ connector }

// Begin implements [driver.Conn]: the transaction has begun.
func (c *conn) Begin() (driver.Tx, error) { return managed{}, nil }

// BeginTx implements [driver.ConnBeginTx].
func (c *conn) BeginTx(context.Context, driver.TxOptions) (driver.Tx, error) { return managed{}, nil }

// Close implements [driver.Conn]: the connection is the caller's.
func (c *conn) Close() error { return nil }

// Prepare implements [driver.Conn].
func (c *conn) Prepare(query string) (driver.Stmt, error) {
	return c.PrepareContext(context.Background(), query)
}

// PrepareContext implements [driver.ConnPrepareContext].
func (c *conn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	if c.closed.Load() {
		return nil, sql.ErrTxDone
	}
	if p, ok := c.lent.(driver.ConnPrepareContext); ok {
		return p.PrepareContext(ctx, query)
	}
	return c.lent.Prepare(query)
}

// ExecContext implements [driver.ExecerContext].
func (c *conn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if c.closed.Load() {
		return nil, sql.ErrTxDone
	}
	if e, ok := c.lent.(driver.ExecerContext); ok {
		return e.ExecContext(ctx, query, args)
	}
	return nil, driver.ErrSkip
}

// QueryContext implements [driver.QueryerContext].
func (c *conn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	if c.closed.Load() {
		return nil, sql.ErrTxDone
	}
	if q, ok := c.lent.(driver.QueryerContext); ok {
		return q.QueryContext(ctx, query, args)
	}
	return nil, driver.ErrSkip
}

// CheckNamedValue implements [driver.NamedValueChecker].
func (c *conn) CheckNamedValue(v *driver.NamedValue) error {
	if checker, ok := c.lent.(driver.NamedValueChecker); ok {
		return checker.CheckNamedValue(v)
	}
	return driver.ErrSkip
}

// managed is the [driver.Tx] of a transaction that the store ends.
type managed struct{}

// Commit implements [driver.Tx].
func (managed) Commit() error { return ErrManaged }

// Rollback implements [driver.Tx].
func (managed) Rollback() error { return ErrManaged }
