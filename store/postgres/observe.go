package reprisepg

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// The notes that [ObserveNotices] leaves on a connection.
const (
	noteObserved    = "reprise.observed"
	noteUnconfirmed = "reprise.unconfirmed"
)

// ObserveNotices makes the stores notice when the server gave up waiting for its
// synchronous standby. Call it before a pool is made from c:
//
//	config, err := pgxpool.ParseConfig(url)
//	reprisepg.ObserveNotices(config.ConnConfig)
//	pool, err := pgxpool.NewWithConfig(ctx, config)
//
// or, with database/sql, before stdlib.OpenDB or stdlib.RegisterConnConfig:
//
//	config, err := pgx.ParseConfig(url)
//	reprisepg.ObserveNotices(config)
//	db := stdlib.OpenDB(*config)
//
// PostgreSQL reports such a commit as a success with a warning, and pgx hands warnings
// only to the configuration of the connection. Without ObserveNotices, a record that a
// failover would lose looks as safe as any other; with it, the operation fails with
// ErrNotReplicated and is repeated. Servers without synchronous replication do not need
// it. It keeps the OnNotice and AfterConnect of c.
func ObserveNotices(c *pgx.ConnConfig) {
	notice, connect := c.OnNotice, c.AfterConnect
	c.OnNotice = func(conn *pgconn.PgConn, n *pgconn.Notice) {
		// Only the name of the function identifies the warning: its text is translated, and its
		// code is that of any warning.
		if n.Routine == "SyncRepWaitForLSN" {
			conn.CustomData()[noteUnconfirmed] = true
		}
		if notice != nil {
			notice(conn, n)
		}
	}
	c.AfterConnect = func(ctx context.Context, conn *pgconn.PgConn) error {
		conn.CustomData()[noteObserved] = true
		if connect != nil {
			return connect(ctx, conn)
		}
		return nil
	}
}

// unconfirmed reports whether a commit on conn was not confirmed by the synchronous
// standby, and clears the note of it.
func unconfirmed(conn *pgx.Conn) bool {
	notes := conn.PgConn().CustomData()
	_, found := notes[noteUnconfirmed]
	delete(notes, noteUnconfirmed)
	return found
}
