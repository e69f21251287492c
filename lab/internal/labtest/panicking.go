package labtest

import (
	"context"
	"database/sql/driver"
	"sync/atomic"
)

// Panicking is a connector of database/sql whose driver panics in one statement.
type Panicking struct {
	Open func(context.Context) (driver.Conn, error)

	left atomic.Int64 // statements until then; 0: never
}

// At makes the driver panic in the n-th statement from now, counted from 1. It reports
// whether the last panic that was asked for is still to come.
func (p *Panicking) At(n int64) (pending bool) { return p.left.Swap(n) > 0 }

// Connect implements [driver.Connector].
func (p *Panicking) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := p.Open(ctx)
	if err != nil {
		return nil, err
	}
	return &panickingConn{conn.(AnyConn), p}, nil //nolint:forcetypeassert // all drivers that are tested are such
}

// Driver implements [driver.Connector].
func (p *Panicking) Driver() driver.Driver { return nil }

// AnyConn is a connection of a driver with the newer interfaces.
type AnyConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
}

type panickingConn struct {
	AnyConn

	all *Panicking
}

func (c *panickingConn) step() {
	if left := c.all.left.Load(); left > 0 && c.all.left.CompareAndSwap(left, left-1) && left == 1 {
		panic("the driver panics")
	}
}

// ExecContext implements [driver.ExecerContext].
func (c *panickingConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	c.step()
	return c.AnyConn.ExecContext(ctx, query, args)
}

// QueryContext implements [driver.QueryerContext].
func (c *panickingConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	c.step()
	return c.AnyConn.QueryContext(ctx, query, args)
}

// PrepareContext implements [driver.ConnPrepareContext].
func (c *panickingConn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	c.step()
	stmt, err := c.AnyConn.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	return &panickingStmt{stmt.(anyStmt), c}, nil //nolint:forcetypeassert // all drivers that are tested are such
}

// anyStmt is a prepared statement of a driver with the newer interfaces.
type anyStmt interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

type panickingStmt struct {
	anyStmt

	conn *panickingConn
}

// ExecContext implements [driver.StmtExecContext].
func (s *panickingStmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	s.conn.step()
	return s.anyStmt.ExecContext(ctx, args)
}

// QueryContext implements [driver.StmtQueryContext].
func (s *panickingStmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	s.conn.step()
	return s.anyStmt.QueryContext(ctx, args)
}
