package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/internal/sqltx"
)

// with calls f with a connection of the pool, in which a panic of the driver is an error.
// The pool closes the connection if f says that it is broken.
func with(ctx context.Context, db *sql.DB, f func(on *sqltx.Lent) (broken bool)) error {
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	called := false
	err = sqltx.Raw(conn, func(driverConn any) error { //nolint:contextcheck // the connection has none of its own
		on, err := sqltx.Lend(driverConn.(driver.Conn)) //nolint:forcetypeassert // as database/sql has it
		if err != nil {
			return err
		}
		defer on.End()
		called = true
		if f(on) || on.Panicked() {
			return driver.ErrBadConn // database/sql closes it
		}
		return nil
	})
	if called {
		return nil
	}
	return err
}

// connection is a [Conn] of database/sql.
type connection struct{ conn *sql.Conn }

// Exec implements [Conn].
func (c connection) Exec(ctx context.Context, statement string, args ...any) (int, error) {
	result, err := c.conn.ExecContext(ctx, statement, args...)
	if err != nil {
		return 0, err
	}
	n, err := result.RowsAffected()
	return int(n), err
}

// Query implements [Conn].
func (c connection) Query(ctx context.Context, statement string, read func(Row) error, args ...any) error {
	rows, err := c.conn.QueryContext(ctx, statement, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := read(rows); err != nil {
			return err
		}
	}
	return errors.Join(rows.Err(), rows.Close())
}

// start executes a statement that begins a transaction. A database with one writer
// refuses it while there is another one: then start tries again, until ctx ends.
func (d *Dialect) start(ctx context.Context, on *sqltx.Lent, statement string) error {
	for try := 1; ; try++ {
		err := d.Fail("begin", on.Exec(ctx, statement))
		if !errors.Is(err, store.ErrBusy) || !pause(ctx, try) {
			return err
		}
	}
}

// isBroken reports whether a connection is useless after an error.
func (d *Dialect) isBroken(err error) bool {
	return d.retires(err) || errors.Is(err, driver.ErrBadConn)
}
