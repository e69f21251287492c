package wire

import (
	"context"
	"database/sql/driver"
	"net"

	"github.com/jackc/pgx/v5"
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
//
// database/sql lends its connections for the duration of a call only, so that a goroutine
// stays in such a call until Release.
func (d Database) Hold(ctx context.Context, op string) (*Held, error) {
	s, err := d.Acquire(ctx, op)
	if err != nil {
		return nil, err
	}
	if s.SQL == nil {
		return &Held{Conn: s.Pool.Conn(), socket: s.Socket, back: s.Release}, nil
	}
	type lent struct {
		held *Held
		err  error
	}
	answer, back, ended := make(chan lent, 1), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		err := s.raw(func(driverConn any) error {
			conn, err := pgxConn(driverConn)
			if err != nil {
				return err
			}
			h := &Held{Conn: conn, socket: s.Socket, back: func() { close(back); <-ended }}
			h.Driver, _ = driverConn.(driver.Conn)
			answer <- lent{held: h}
			<-back
			return nil
		})
		if err != nil {
			answer <- lent{err: err}
		}
		s.Release()
	}()
	a := <-answer
	if a.err != nil {
		return nil, Fail(op, a.err)
	}
	return a.held, nil
}

// Kill closes the connection during its use. The server then rolls back, and the next
// statement on it fails.
func (h *Held) Kill() { _ = h.socket.Close() }

// Release returns the connection to the pool, which keeps it only if it is idle and
// outside of a transaction.
func (h *Held) Release() { h.back() }
