package reprisepg

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/internal/sqltx"
)

// Pool is where a store gets its connections: a pool of pgx, or a *sql.DB over pgx's
// driver (github.com/jackc/pgx/v5/stdlib). Over another driver every call fails with
// ErrMisconfigured.
type Pool interface{ *pgxpool.Pool | *sql.DB }

// database is a [Pool], of which one kind is set.
type database struct {
	pool *pgxpool.Pool
	sql  *sql.DB
}

func databaseOf[P Pool](db P) (d database) {
	d.pool, _ = any(db).(*pgxpool.Pool)
	d.sql, _ = any(db).(*sql.DB)
	return d
}

// use says how many connections of the pool are in use, and how many it may have; 0 means
// that there is no limit.
func (d database) use() (used, limit int) {
	if d.pool != nil {
		stat := d.pool.Stat()
		return int(stat.AcquiredConns()), int(stat.MaxConns())
	}
	stats := d.sql.Stats()
	return stats.InUse, stats.MaxOpenConnections
}

// heldConn is a connection out of a pool that one caller uses for several calls.
type heldConn struct {
	*pgx.Conn

	driver driver.Conn // over a *sql.DB: the connection of its driver, which may wrap Conn
	back   func()      // to the pool, which keeps it only if it is idle and outside of a transaction
	killed atomic.Bool
}

// hold takes a connection out of the pool. Its error says which operation failed.
func (d database) hold(ctx context.Context, op string) (*heldConn, error) {
	start := time.Now()
	conn, err := d.acquire(ctx)
	if err != nil {
		used, limit := d.use()
		return nil, failAcquire(op, err, time.Since(start), used, limit)
	}
	unconfirmed(conn.Conn) // forget the mark of earlier statements
	return conn, nil
}

func (d database) acquire(ctx context.Context) (*heldConn, error) {
	if d.pool != nil {
		conn, err := d.pool.Acquire(ctx)
		if err != nil {
			return nil, err
		}
		return &heldConn{Conn: conn.Conn(), back: conn.Release}, nil
	}
	held, err := sqltx.Hold(ctx, d.sql)
	if err != nil {
		return nil, err
	}
	conn, err := pgxConn(held.Conn)
	if err != nil {
		held.Release(false)
		return nil, err
	}
	return &heldConn{Conn: conn, driver: held.Conn, back: func() { held.Release(unusable(conn)) }}, nil
}

// kill closes the connection during its use. The server then rolls back, and the next
// statement on it fails.
func (c *heldConn) kill() {
	c.killed.Store(true)
	_ = c.PgConn().Conn().Close()
}

// release returns the connection to the pool, or ends it if it was killed.
func (c *heldConn) release() {
	if c.killed.Load() {
		_ = c.Close(context.Background())
	}
	c.back()
}

// unusable reports whether a connection must not return to the pool: it is closed, or in
// a transaction.
func unusable(conn *pgx.Conn) bool {
	return conn.IsClosed() || conn.PgConn().IsBusy() || conn.PgConn().TxStatus() != txIdle
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
