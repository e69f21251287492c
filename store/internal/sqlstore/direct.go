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
		err = f(ctx, direct{conn})
		broken := w.Dialect.retires(err)
		if broken {
			retire(conn)
		}
		_ = conn.Close()
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
