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

// Use says how many connections of the pool are in use, and how many it may have; 0 means
// that there is no limit.
func (d Database) Use() (used, limit int) {
	if d.Pool != nil {
		stat := d.Pool.Stat()
		return int(stat.AcquiredConns()), int(stat.MaxConns())
	}
	stats := d.SQL.Stats()
	return stats.InUse, stats.MaxOpenConnections
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
	fail := func(err error) error {
		used, limit := d.Use()
		return failAcquire(op, err, time.Since(start), used, limit)
	}
	if d.Pool != nil {
		conn, err := d.Pool.Acquire(ctx)
		if err != nil {
			return nil, fail(err)
		}
		return &Held{Conn: conn.Conn(), Release: conn.Release}, nil
	}
	held, err := sqltx.Hold(ctx, d.SQL)
	if err != nil {
		return nil, fail(err)
	}
	conn, err := pgxConn(held.Conn)
	if err != nil {
		held.Release(false)
		return nil, fail(err)
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
