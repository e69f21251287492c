// Package wire takes a connection out of a pool and sends statements on it, in the binary
// format of the server, and classifies their failures. It is independent of records.
package wire

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
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

// With calls f with a connection of the pool, which keeps it only if it is idle and
// outside of a transaction afterwards. It returns an error, which says that op failed, if
// it did not call f.
func (d Database) With(ctx context.Context, op string, f func(*pgx.Conn)) error {
	start := time.Now()
	if d.Pool != nil {
		conn, err := d.Pool.Acquire(ctx)
		if err != nil {
			return d.failAcquire(op, err, start)
		}
		defer conn.Release()
		f(conn.Conn())
		return nil
	}
	conn, err := d.SQL.Conn(ctx)
	if err != nil {
		return d.failAcquire(op, err, start)
	}
	defer func() { _ = conn.Close() }()
	called := false
	if err := sqltx.Raw(conn, func(driverConn any) error {
		conn, err := pgxConn(driverConn)
		if err != nil {
			return err
		}
		called = true
		if f(conn); unusable(conn) {
			return driver.ErrBadConn // database/sql closes it
		}
		return nil
	}); !called {
		return d.failAcquire(op, err, start)
	}
	return nil
}

func (d Database) failAcquire(op string, err error, start time.Time) error {
	return failAcquire(op, err, time.Since(start), d.Use())
}

// Held is a connection out of a pool that one caller uses for several calls.
type Held struct {
	Conn   *pgx.Conn
	Driver driver.Conn // over a *sql.DB: the connection of its driver, which may wrap Conn

	// Release returns the connection to the pool, which keeps it only if it is idle and
	// outside of a transaction.
	Release func()
}

// Hold takes a connection out of the pool. Its error says which operation failed.
func (d Database) Hold(ctx context.Context, op string) (*Held, error) {
	start := time.Now()
	if d.Pool != nil {
		conn, err := d.Pool.Acquire(ctx)
		if err != nil {
			return nil, d.failAcquire(op, err, start)
		}
		return &Held{Conn: conn.Conn(), Release: conn.Release}, nil
	}
	held, err := sqltx.Hold(ctx, d.SQL)
	if err != nil {
		return nil, d.failAcquire(op, err, start)
	}
	conn, err := pgxConn(held.Conn)
	if err != nil {
		held.Release(false)
		return nil, d.failAcquire(op, err, start)
	}
	return &Held{Conn: conn, Driver: held.Conn, Release: func() { held.Release(unusable(conn)) }}, nil
}

// Kill closes the connection during its use. The server then rolls back, and the next
// statement on it fails.
func (h *Held) Kill() { _ = h.Conn.PgConn().Conn().Close() }

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
