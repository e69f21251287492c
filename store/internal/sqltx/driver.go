package sqltx

import (
	"context"
	"database/sql/driver"
	"fmt"
)

// connector is the [driver.Connector] of the one connection. It must not have the methods
// of that: Close of a [sql.DB] calls the Close of its connector.
type connector struct{ *Lent }

// Connect implements [driver.Connector].
func (c connector) Connect(context.Context) (driver.Conn, error) { return &conn{c.Lent}, nil }

// Driver implements [driver.Connector].
func (c connector) Driver() driver.Driver { return nil }

// conn forwards the statements of the handler.
type conn struct{ *Lent }

// run executes a statement of the handler. Interrupt ends it, and a query until its rows
// are closed, unless there is no [Undoes].
func run[T any](ctx context.Context, c *conn, f func(context.Context) (T, error)) (value T, err error) {
	if err := c.begin(); err != nil {
		return value, err
	}
	defer c.end(&err)
	if c.undoes == nil {
		return f(ctx)
	}
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(c.running, cancel) //nolint:contextcheck // Interrupt ends it, and the caller ends ctx
	release := func() {
		stop()
		cancel()
	}
	defer func() {
		if open, ok := any(value).(driver.Rows); ok && err == nil {
			value, _ = any(&rows{open, c.Lent, release}).(T)
		} else {
			release()
		}
	}()
	return f(ctx)
}

// errPanic is the error of a statement in which the driver panicked.
func errPanic(value any) error { return fmt.Errorf("reprise: the driver panicked: %v", value) }

// Begin implements [driver.Conn]: the transaction has begun.
func (c *conn) Begin() (driver.Tx, error) { return c, nil }

// Close implements [driver.Conn]: the connection is the caller's.
func (c *conn) Close() error { return nil }

// Prepare implements [driver.Conn].
func (c *conn) Prepare(query string) (driver.Stmt, error) {
	return c.PrepareContext(context.Background(), query)
}

// PrepareContext implements [driver.ConnPrepareContext].
func (c *conn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	prepared, err := run(ctx, c, func(ctx context.Context) (preparedStmt, error) { return prepare(ctx, c.Lent.conn, query) })
	if err != nil {
		return nil, err
	}
	return &stmt{prepared, c}, nil
}

// ExecContext implements [driver.ExecerContext].
func (c *conn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	e, ok := c.Lent.conn.(driver.ExecerContext)
	if !ok {
		return nil, driver.ErrSkip
	}
	return run(ctx, c, func(ctx context.Context) (driver.Result, error) { return e.ExecContext(ctx, query, args) })
}

// QueryContext implements [driver.QueryerContext].
func (c *conn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	q, ok := c.Lent.conn.(driver.QueryerContext)
	if !ok {
		return nil, driver.ErrSkip
	}
	return run(ctx, c, func(ctx context.Context) (driver.Rows, error) { return q.QueryContext(ctx, query, args) })
}

// CheckNamedValue implements [driver.NamedValueChecker].
func (c *conn) CheckNamedValue(v *driver.NamedValue) error {
	if checker, ok := c.Lent.conn.(driver.NamedValueChecker); ok {
		return checker.CheckNamedValue(v)
	}
	return driver.ErrSkip
}

// Commit implements [driver.Tx].
func (c *conn) Commit() error { return ErrManaged }

// Rollback implements [driver.Tx].
func (c *conn) Rollback() error { return ErrManaged }

// stmt is a prepared statement of a conn.
type stmt struct {
	preparedStmt

	conn *conn
}

// ExecContext implements [driver.StmtExecContext].
func (s *stmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	return run(ctx, s.conn, func(ctx context.Context) (driver.Result, error) { return s.preparedStmt.ExecContext(ctx, args) })
}

// QueryContext implements [driver.StmtQueryContext].
func (s *stmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	return run(ctx, s.conn, func(ctx context.Context) (driver.Rows, error) { return s.preparedStmt.QueryContext(ctx, args) })
}

// CheckNamedValue implements [driver.NamedValueChecker].
func (s *stmt) CheckNamedValue(v *driver.NamedValue) error {
	if checker, ok := s.preparedStmt.(driver.NamedValueChecker); ok {
		return checker.CheckNamedValue(v)
	}
	return s.conn.CheckNamedValue(v)
}
