// Package wire takes a connection out of a pool and sends statements on it, in the binary
// format of the server, and classifies their failures. It is independent of records.
package wire

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"net"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/internal/sqltx"
)

// Database is where a store gets its connections: a pgx pool, or a *sql.DB over pgx's
// driver. Exactly one of the two is set.
type Database struct {
	Pool *pgxpool.Pool
	SQL  *sql.DB
}

// PoolUse says how many connections a pool may have and how many are in use.
type PoolUse struct{ Limit, Used int }

func (u PoolUse) full() bool { return u.Limit > 0 && u.Used >= u.Limit }

func (u PoolUse) String() string {
	switch {
	case u.Limit == 0:
		return fmt.Sprintf("%d in use, no limit", u.Used)
	case u.full():
		return fmt.Sprintf("pool has %d, all in use", u.Limit)
	}
	return fmt.Sprintf("pool has %d, %d in use", u.Limit, u.Used)
}

// Use reads the counts of the pool.
func (d Database) Use() PoolUse {
	if d.Pool != nil {
		stat := d.Pool.Stat()
		return PoolUse{Limit: int(stat.MaxConns()), Used: int(stat.AcquiredConns())}
	}
	stats := d.SQL.Stats()
	return PoolUse{Limit: stats.MaxOpenConnections, Used: stats.InUse}
}

// Acquire takes a connection out of the pool. Its error says which operation failed.
func (d Database) Acquire(ctx context.Context, op string) (*Session, error) {
	start := time.Now()
	s, err := d.session(ctx)
	if err != nil {
		return nil, failAcquire(op, err, time.Since(start), d.Use())
	}
	return s, nil
}

func (d Database) session(ctx context.Context) (*Session, error) {
	if d.Pool != nil {
		conn, err := d.Pool.Acquire(ctx)
		if err != nil {
			return nil, err
		}
		return &Session{Pool: conn, Socket: conn.Conn().PgConn().Conn()}, nil
	}
	conn, err := d.SQL.Conn(ctx)
	if err != nil {
		return nil, err
	}
	s := &Session{SQL: conn}
	err = s.Do(func(c *pgx.Conn) error { s.Socket = c.PgConn().Conn(); return nil })
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	return s, nil
}

// Session is one connection out of a pool, used by one caller at a time.
type Session struct {
	Pool   *pgxpool.Conn // exactly one of these two is set
	SQL    *sql.Conn
	Socket net.Conn
}

// Do hands the connection to f.
//
// database/sql lends its connection for the duration of a call only. The error of f, and
// a panic, bypass database/sql, which would close the connection, and wait for an open
// transaction first.
func (s *Session) Do(f func(*pgx.Conn) error) error {
	if s.Pool != nil {
		return f(s.Pool.Conn())
	}
	var (
		result   error
		panicked any
		returned bool
	)
	err := sqltx.Raw(s.SQL, func(driverConn any) error {
		conn, err := pgxConn(driverConn)
		if err != nil {
			result, returned = err, true
			return nil
		}
		defer func() {
			if !returned {
				panicked = recover()
			}
		}()
		result = f(conn)
		returned = true
		return nil
	})
	switch {
	case panicked != nil:
		panic(panicked) // of f, for example of a tracer of the application
	case !returned:
		if err == nil {
			err = driver.ErrBadConn
		}
		return err
	}
	return result
}

// unusable reports whether a connection must not return to the pool: it is closed, or in
// a transaction.
func unusable(conn *pgx.Conn) bool {
	return conn.IsClosed() || conn.PgConn().IsBusy() || conn.PgConn().TxStatus() != 'I'
}

// pgxConn returns pgx's connection in a connection of database/sql. It looks into drivers
// that wrap another one, as tracing drivers do.
func pgxConn(driverConn any) (*pgx.Conn, error) {
	for {
		switch c := driverConn.(type) {
		case *stdlib.Conn:
			return c.Conn(), nil
		case interface{ Raw() driver.Conn }:
			driverConn = c.Raw()
		default:
			return nil, fmt.Errorf("%w: postgres: the *sql.DB uses the driver %T, want pgx's (github.com/jackc/pgx/v5/stdlib)",
				store.ErrMisconfigured, driverConn)
		}
	}
}

// Kill closes the connection during its use. The server then rolls back, and the
// next statement on it fails.
func (s *Session) Kill() { _ = s.Socket.Close() }

// Release returns the connection to the pool, which keeps it only if it is idle and
// outside of a transaction.
func (s *Session) Release() {
	if s.Pool != nil {
		s.Pool.Release()
		return
	}
	_ = s.SQL.Raw(func(driverConn any) error {
		conn, err := pgxConn(driverConn)
		if err != nil || unusable(conn) {
			return driver.ErrBadConn // database/sql closes it
		}
		return nil
	})
	_ = s.SQL.Close()
}
