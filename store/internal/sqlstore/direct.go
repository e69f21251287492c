package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"

	"github.com/reprise-go/reprise/core/store"
)

// Direct is the [Writer] of a database that has any number of writers. Each statement of
// an operation commits at once, so an operation must be repeatable after each of its
// statements.
type Direct struct {
	DB      *sql.DB
	Dialect *Dialect
}

// Write implements [Writer].
func (w *Direct) Write(ctx context.Context, op string, f func(context.Context, Conn) error) error {
	for try := 1; ; try++ {
		conn, err := w.DB.Conn(ctx)
		if err != nil {
			return w.Dialect.Fail(op, err)
		}
		broken, err := w.use(ctx, conn, f)
		wrote := errors.As(err, new(execError))
		switch {
		case wrote:
			return w.Dialect.FailCommit(op, err)
		case isContext(err):
			return fmt.Errorf("%w: %s: %s: the server did not answer a read: %s", store.ErrUnavailable, w.Dialect.Name, op, err.Error())
		case !broken && !errors.Is(err, driver.ErrBadConn) || try == maxTries: // else the server closed the connection while it was in the pool
			return w.Dialect.Fail(op, err)
		}
	}
}

// use calls f with a connection, and then closes the connection if it is useless, or else
// gives it back to the pool.
func (w *Direct) use(ctx context.Context, conn *sql.Conn, f func(context.Context, Conn) error) (broken bool, err error) {
	panicked := true
	defer func() {
		if panicked {
			go abandon(conn)
			return
		}
		if broken {
			retire(conn)
		}
		_ = conn.Close()
	}()
	err = f(ctx, direct{conn})
	panicked = false
	return w.Dialect.retires(err), err
}

// abandon closes a connection whose driver panicked. If that was in a query, it waits
// forever, because database/sql does not end the query.
func abandon(conn *sql.Conn) {
	defer func() { _ = recover() }()
	retire(conn)
}

// direct is a connection whose writes commit at once. If a write fails, it may have
// committed.
type direct struct{ *sql.Conn }

func (c direct) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	result, err := c.Conn.ExecContext(ctx, query, args...)
	if err != nil {
		err = execError{err}
	}
	return result, err
}

// execError is the failure of a write.
type execError struct{ error }

func (e execError) Unwrap() error { return e.error }

// retire closes a connection of the pool. A transaction on it must have ended before,
// because database/sql waits for it.
func retire(conn *sql.Conn) { _ = conn.Raw(func(any) error { return driver.ErrBadConn }) }
