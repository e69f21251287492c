package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/internal/sqltx"
)

// connection is one of the pool, for the statements of one caller. A panic of the driver
// in one of them is its error.
type connection struct {
	held *sqltx.Held
	lent *sqltx.Lent
}

// connect takes a connection out of the pool.
func connect(ctx context.Context, db *sql.DB) (*connection, error) {
	held, err := sqltx.Hold(ctx, db)
	if err != nil {
		return nil, err
	}
	lent, err := sqltx.Lend(held.Conn) //nolint:contextcheck // it has no context of its own
	if err != nil {
		held.Release(true)
		return nil, err
	}
	return &connection{held, lent}, nil
}

// release gives the connection back to the pool, which closes it if it is broken.
func (c *connection) release(broken bool) {
	c.lent.End()
	c.held.Release(broken || c.lent.Panicked())
}

// exec executes a statement without parameters.
func (c *connection) exec(ctx context.Context, statement string) error {
	_, err := c.lent.Store.ExecContext(ctx, statement)
	return err
}

// start executes a statement that begins a transaction. A database with one writer
// refuses it while there is another one: then start tries again, until ctx ends.
func (c *connection) start(ctx context.Context, d *Dialect, statement string) error {
	for try := 1; ; try++ {
		err := d.Fail("begin", c.exec(ctx, statement))
		if !errors.Is(err, store.ErrBusy) || !pause(ctx, try) {
			return err
		}
	}
}

// isBroken reports whether a connection is useless after an error.
func (d *Dialect) isBroken(err error) bool {
	return d.retires(err) || errors.Is(err, driver.ErrBadConn)
}
