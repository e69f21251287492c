package reprisepg

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// The notes that ObserveNotices leaves on a connection.
const (
	noteObserved    = "reprise.observed"
	noteUnconfirmed = "reprise.unconfirmed"
)

// ObserveNotices lets the stores see, on the connections of a pool that is made from c
// afterwards, that the server gave up waiting for its synchronous standby. PostgreSQL
// reports such a commit as a success with a warning, and pgx hands warnings only to the
// configuration of the connection; unseen, a record that a failover loses looks as safe
// as any. With it the operation fails with ErrNotReplicated and is repeated. Servers
// without synchronous replication do not need it. It keeps the OnNotice and AfterConnect
// of c.
func ObserveNotices(c *pgxpool.Config) {
	notice, connect := c.ConnConfig.OnNotice, c.AfterConnect
	c.ConnConfig.OnNotice = func(conn *pgconn.PgConn, n *pgconn.Notice) {
		// The text is translated and the code is that of any warning; the name of the
		// function is neither.
		if n.Routine == "SyncRepWaitForLSN" {
			conn.CustomData()[noteUnconfirmed] = true
		}
		if notice != nil {
			notice(conn, n)
		}
	}
	c.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		conn.PgConn().CustomData()[noteObserved] = true
		if connect != nil {
			return connect(ctx, conn)
		}
		return nil
	}
}

// unconfirmed reports, once, that a commit on conn was not confirmed by the synchronous
// standby.
func unconfirmed(conn *pgx.Conn) bool {
	notes := conn.PgConn().CustomData()
	_, found := notes[noteUnconfirmed]
	delete(notes, noteUnconfirmed)
	return found
}

// observed reports whether ObserveNotices configured conn.
func observed(conn *pgx.Conn) bool {
	_, found := conn.PgConn().CustomData()[noteObserved]
	return found
}
