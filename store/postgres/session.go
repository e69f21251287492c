package reprisepg

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/reprise-go/reprise/store/internal/sqlstore"
)

// with calls f with a connection of the pool: see [sqlstore.Direct].
func (t *table) with(ctx context.Context, op string, f func(on sqlstore.Conn) (broken bool)) error {
	held, err := t.db.hold(ctx, op)
	if err != nil {
		return err
	}
	defer held.release() //nolint:contextcheck // it does not wait
	if f(&connection{t, held.Conn, op}) {
		held.kill()
	}
	return nil
}

// connection executes statements outside of handlers' transactions. Each is one round
// trip that leaves no state in the session.
type connection struct {
	table *table
	conn  *pgx.Conn
	op    string
}

// Exec implements [sqlstore.Conn].
func (c *connection) Exec(ctx context.Context, statement string, args ...any) (int, error) {
	_, tag, err := send(ctx, c.conn, false, statementCall{statement, args, nil})
	return int(tag.RowsAffected()), c.end(err)
}

// Query implements [sqlstore.Conn].
func (c *connection) Query(ctx context.Context, statement string, read func(sqlstore.Row) error, args ...any) error {
	_, _, err := send(ctx, c.conn, false, statementCall{statement, args, read})
	return c.end(err)
}

// send executes prepared calls in one round trip and one transaction. They are made anew
// if they have to be sent again, because the session lacked the prepared statements.
func (c *connection) send(ctx context.Context, calls func() []statementCall) error {
	prepared := c.table.prepares(c.conn)
	_, _, err := send(ctx, c.conn, prepared, calls()...)
	if prepared && notPrepared(err) {
		c.table.lost(ctx, c.conn, err)
		_, _, err = send(ctx, c.conn, false, calls()...)
	}
	return c.end(err)
}

// end returns err, the result of a statement, unless no standby confirmed its commit.
func (c *connection) end(err error) error {
	if unconfirmed(c.conn) {
		return notReplicated(c.op)
	}
	return err
}

func connectionOf(on sqlstore.Conn) *connection {
	return sqlstore.Underlying(on).(*connection) //nolint:forcetypeassert // as with lends it
}
