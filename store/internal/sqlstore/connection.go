package sqlstore

import (
	"bytes"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/internal/sqltx"
)

// Pool has the connections of a database.
type Pool struct {
	*sql.DB

	dialect  *Dialect
	prepared sqltx.Prepared
}

// newPool returns the pool of db.
func newPool(db *sql.DB, d *Dialect) *Pool {
	p := &Pool{DB: db, dialect: d, prepared: sqltx.Prepared{Lost: d.Lost}}
	if !d.Embedded {
		p.prepared.Open = func() int { return db.Stats().OpenConnections }
	}
	return p
}

// use says how many connections are in use or being opened, and how many there may be; 0
// means that there is no limit.
func (p *Pool) use() (used, limit int) {
	stats := p.Stats()
	return stats.InUse, stats.MaxOpenConnections
}

// fail returns the error of op, which got no connection since start. The database of an
// Embedded dialect opens one at once.
func (p *Pool) fail(op string, start time.Time, err error) error {
	if p.dialect.Embedded || !IsContext(err) {
		return p.dialect.Fail(op, err)
	}
	used, limit := p.use()
	return NoConnection(p.dialect.Name, op, time.Since(start), used, limit)
}

// with calls f with a connection of the pool. The pool closes it if f says that it is
// broken, or if the driver panicked.
func (p *Pool) with(ctx context.Context, op string, f func(on connection) (broken bool)) error {
	start := time.Now()
	conn, err := p.Conn(ctx)
	if err != nil {
		return p.fail(op, start, err)
	}
	defer func() { _ = conn.Close() }()
	called := false
	err = sqltx.Raw(conn, func(driverConn any) error {
		on := connection{p.prepared.On(driverConn.(driver.Conn))} //nolint:forcetypeassert // as database/sql has it
		called = true
		broken := f(on)
		return on.end(broken)
	})
	if called {
		return nil
	}
	return err
}

// lend is with for any database: see [Lend].
func (p *Pool) lend(ctx context.Context, op string, f func(on Conn) (broken bool)) error {
	return p.with(ctx, op, func(on connection) bool { return f(on) })
}

// connection is a [Conn] of a driver.
type connection struct{ *sqltx.Session }

// Query implements [Conn].
func (c connection) Query(ctx context.Context, statement string, read func(Row) error, args ...any) error {
	return c.Session.Query(ctx, statement, func(values []driver.Value) error { return read(cellsOf(values)) }, args...)
}

// execute executes a statement without parameters.
func (c connection) execute(ctx context.Context, statement string) error {
	_, err := c.Exec(ctx, statement)
	return err
}

// end ends the use of a connection. The error makes the pool close it.
func (c connection) end(broken bool) error {
	c.End(broken || c.Panicked())
	if broken || c.Panicked() {
		return driver.ErrBadConn
	}
	return nil
}

// cellsOf is a [Row] of a driver.
type cellsOf []driver.Value

// Scan implements [Row]. It copies what it returns.
func (r cellsOf) Scan(to ...any) error {
	if len(to) != len(r) {
		return fmt.Errorf("%d columns, want %d", len(r), len(to))
	}
	for i, v := range r {
		var err error
		switch to := to[i].(type) {
		case *any:
			if b, ok := v.([]byte); ok {
				v = bytes.Clone(b)
			}
			*to = v
		case *int64:
			err = convert(to, v)
		case *string:
			err = convert(to, v)
		case **int64:
			if *to = nil; v != nil {
				*to = new(int64)
				err = convert(*to, v)
			}
		default:
			err = fmt.Errorf("no conversion to %T", to)
		}
		if err != nil {
			return fmt.Errorf("column %d: %w", i+1, err)
		}
	}
	return nil
}

// convert converts a value as database/sql does.
func convert[T any](to *T, v driver.Value) error {
	var null sql.Null[T]
	err := null.Scan(v)
	if err == nil && !null.Valid {
		err = errors.New("it is NULL")
	}
	*to = null.V
	return err
}

// start executes a statement that begins a transaction. A database with one writer
// refuses it while there is another one: then start tries again, until ctx ends.
func (d *Dialect) start(ctx context.Context, on connection, statement string) error {
	for try := 1; ; try++ {
		err := on.execute(ctx, statement)
		if err != nil && strings.Contains(err.Error(), "within a transaction") { // SQLite has no code for it
			return fmt.Errorf("%s: %w: %w", d.Name, errOpen, err)
		}
		err = d.Fail("begin", err)
		if !errors.Is(err, store.ErrBusy) || !pause(ctx, try) {
			return err
		}
	}
}

// isBroken reports whether a connection is useless after an error.
func (d *Dialect) isBroken(err error) bool {
	return err != nil && (errors.Is(err, driver.ErrBadConn) || errors.Is(err, errStale) || d.Retires != nil && d.Retires(err))
}
