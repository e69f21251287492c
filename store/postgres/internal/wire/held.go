package wire

import (
	"context"
	"database/sql/driver"
	"net"

	"github.com/jackc/pgx/v5"
	"github.com/reprise-go/reprise/store/internal/sqltx"
)

// Held is a connection out of a pool that one caller uses for several calls. Release
// gives it back.
type Held struct {
	Conn   *pgx.Conn
	Driver driver.Conn // over a *sql.DB: the connection of its driver, which may wrap Conn

	socket net.Conn
	back   func()
}

// Hold takes a connection out of the pool. Its error says which operation failed.
func (d Database) Hold(ctx context.Context, op string) (*Held, error) {
	s, err := d.Acquire(ctx, op)
	if err != nil {
		return nil, err
	}
	if s.SQL == nil {
		return &Held{Conn: s.Pool.Conn(), socket: s.Socket, back: s.Release}, nil
	}
	held, err := sqltx.HoldConn(s.SQL)
	if err != nil {
		return nil, Fail(op, err)
	}
	conn, err := pgxConn(held.Conn)
	if err != nil {
		held.Release(false)
		return nil, Fail(op, err)
	}
	return &Held{Conn: conn, Driver: held.Conn, socket: s.Socket, back: func() { held.Release(unusable(conn)) }}, nil
}

// Kill closes the connection during its use. The server then rolls back, and the next
// statement on it fails.
func (h *Held) Kill() { _ = h.socket.Close() }

// Release returns the connection to the pool, which keeps it only if it is idle and
// outside of a transaction.
func (h *Held) Release() { h.back() }
