package sqlstore

import (
	"context"
	"errors"
)

// Direct is the [Writer] of a database that has any number of writers. Each statement of
// an operation commits at once, so an operation must be repeatable after each of its
// statements.
type Direct struct {
	With    Lend
	Dialect *Dialect
}

// Write implements [Writer].
func (w *Direct) Write(ctx context.Context, op string, f func(context.Context, Conn) error) error {
	for try := 1; ; try++ {
		var (
			result error
			broken bool
		)
		if err := w.With(ctx, op, func(on Conn) bool {
			d := &direct{Conn: on, dialect: w.Dialect}
			result = f(ctx, d)
			broken = d.isolated || w.Dialect.isBroken(result)
			return broken
		}); err != nil {
			return w.Dialect.Fail(op, err)
		}
		wrote := errors.As(result, new(execError))
		switch {
		case wrote:
			return w.Dialect.FailCommit(op, result)
		case !broken || try == maxTries: // else the server closed the connection while it was in the pool
			return w.Dialect.Fail(op, result)
		}
	}
}

// direct is a connection whose writes commit at once. If a write fails, it may have
// committed.
type direct struct {
	Conn

	dialect  *Dialect
	isolated bool // by [Dialect.Isolate], and no write has followed
}

func (c *direct) Exec(ctx context.Context, statement string, args ...any) (int, error) {
	changed, err := c.Conn.Exec(ctx, statement, args...)
	if err == nil {
		c.isolated = statement == c.dialect.Isolate
	}
	return changed, c.dialect.Executed(err)
}

// Underlying returns the connection that a [Direct] hands to an operation.
func Underlying(on Conn) Conn {
	if d, ok := on.(*direct); ok {
		return d.Conn
	}
	return on
}

// Executed marks the failure of a statement that writes and was not executed by
// [Conn.Exec], unless the server refused it as read-only, so that another connection may
// try.
func (d *Dialect) Executed(err error) error {
	if err != nil && (d.ReadOnly == nil || !d.ReadOnly(err)) {
		err = execError{err}
	}
	return err
}

// execError is the failure of a write.
type execError struct{ error }

func (e execError) Unwrap() error { return e.error }
