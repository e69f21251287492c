package sqltx

import (
	"context"
	"database/sql/driver"
	"errors"
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

// run executes a statement of the handler, which Interrupt ends. The context of a query
// lasts until its rows are closed.
func run[T any](ctx context.Context, c *conn, f func(context.Context) (T, error)) (value T, err error) {
	if err := c.begin(); err != nil {
		return value, err
	}
	defer c.end(&err)
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(c.running, cancel) //nolint:contextcheck // Interrupt ends it, and the caller ends ctx
	release := func() {
		stop()
		cancel()
	}
	defer func() {
		if _, open := any(value).(driver.Rows); open {
			c.open = append(c.open, release)
		} else {
			release()
		}
	}()
	return f(ctx)
}

// errPanic is the error of a statement in which the driver panicked.
type errPanic struct{ value any }

func (e errPanic) Error() string { return fmt.Sprintf("reprise: the driver panicked: %v", e.value) }

// Begin implements [driver.Conn]: the transaction has begun.
func (c *conn) Begin() (driver.Tx, error) { return managed{}, nil }

// BeginTx implements [driver.ConnBeginTx].
func (c *conn) BeginTx(context.Context, driver.TxOptions) (driver.Tx, error) { return c.Begin() }

// Close implements [driver.Conn]: the connection is the caller's.
func (c *conn) Close() error { return nil }

// Prepare implements [driver.Conn].
func (c *conn) Prepare(query string) (driver.Stmt, error) {
	return c.PrepareContext(context.Background(), query)
}

// PrepareContext implements [driver.ConnPrepareContext].
func (c *conn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	prepared, err := run(ctx, c, func(ctx context.Context) (driver.Stmt, error) { return prepare(ctx, c.Lent.conn, query) })
	if err != nil {
		return nil, err
	}
	own := &stmt{Stmt: prepared, conn: c}
	if converter, ok := prepared.(driver.ColumnConverter); ok { //nolint:staticcheck // older drivers have it
		return &convertingStmt{own, converter}, nil
	}
	return own, nil
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

// managed is the [driver.Tx] of a transaction that the store ends.
type managed struct{}

// Commit implements [driver.Tx].
func (managed) Commit() error { return ErrManaged }

// Rollback implements [driver.Tx].
func (managed) Rollback() error { return ErrManaged }

// stmt is a prepared statement of a conn.
type stmt struct {
	driver.Stmt

	conn *conn
}

// ExecContext implements [driver.StmtExecContext].
func (s *stmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	return run(ctx, s.conn, func(ctx context.Context) (driver.Result, error) { return execute(ctx, s.Stmt, args) })
}

// QueryContext implements [driver.StmtQueryContext].
func (s *stmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	return run(ctx, s.conn, func(ctx context.Context) (driver.Rows, error) { return query(ctx, s.Stmt, args) })
}

// CheckNamedValue implements [driver.NamedValueChecker].
func (s *stmt) CheckNamedValue(v *driver.NamedValue) error {
	if checker, ok := s.Stmt.(driver.NamedValueChecker); ok {
		return checker.CheckNamedValue(v)
	}
	return s.conn.CheckNamedValue(v)
}

// convertingStmt is a stmt of a driver that has converters of its parameters.
type convertingStmt struct {
	*stmt
	driver.ColumnConverter
}

// positional returns the values of args for a driver that knows no names.
func positional(args []driver.NamedValue) ([]driver.Value, error) {
	values := make([]driver.Value, len(args))
	for i, a := range args {
		if a.Name != "" {
			return nil, errors.New("reprise: the driver has no named parameters")
		}
		values[i] = a.Value
	}
	return values, nil
}
