package sqlstore

import (
	"context"
	"database/sql"
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
		conn, err := connect(ctx, w.DB)
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
		case !broken || try == maxTries: // else the server closed the connection while it was in the pool
			return w.Dialect.Fail(op, err)
		}
	}
}

// use calls f with a connection, which it gives back.
func (w *Direct) use(ctx context.Context, conn *connection, f func(context.Context, Conn) error) (broken bool, err error) {
	broken = true // unless f returns
	defer func() { conn.release(broken) }()
	err = f(ctx, direct{conn.lent.Store})
	broken = w.Dialect.isBroken(err)
	return broken, err
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
