package wire

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

// ObserveNotices makes connections note commits that no standby confirmed.
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

// Unconfirmed reports whether a commit on conn was not confirmed by the synchronous
// standby, and clears the note of it.
func Unconfirmed(conn *pgx.Conn) bool {
	notes := conn.PgConn().CustomData()
	_, found := notes[noteUnconfirmed]
	delete(notes, noteUnconfirmed)
	return found
}

// Observed reports whether [ObserveNotices] configured conn.
func Observed(conn *pgx.Conn) bool {
	_, found := conn.PgConn().CustomData()[noteObserved]
	return found
}
