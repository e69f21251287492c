package reprisepg

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
)

// database is where a store gets its connections: a pgx pool, or a *sql.DB over pgx's
// driver. Exactly one of the two is set.
type database struct {
	pool *pgxpool.Pool
	sql  *sql.DB
}

// poolUse says how many connections a pool may have and how many are in use.
type poolUse struct{ limit, used int }

func (u poolUse) String() string {
	switch {
	case u.limit == 0:
		return fmt.Sprintf("%d in use, no limit", u.used)
	case u.used >= u.limit:
		return fmt.Sprintf("pool has %d, all in use", u.limit)
	}
	return fmt.Sprintf("pool has %d, %d in use", u.limit, u.used)
}

// use reads the counts of the pool.
func (d database) use() poolUse {
	if d.pool != nil {
		return poolUse{limit: int(d.pool.Config().MaxConns), used: int(d.pool.Stat().AcquiredConns())}
	}
	stats := d.sql.Stats()
	return poolUse{limit: stats.MaxOpenConnections, used: stats.InUse}
}

// acquire takes a connection out of the pool. Its error says which operation failed.
func (d database) acquire(ctx context.Context, op string) (*session, error) {
	start := time.Now()
	s, err := d.session(ctx)
	if err != nil {
		return nil, failAcquire(op, err, time.Since(start), d.use())
	}
	return s, nil
}

func (d database) session(ctx context.Context) (*session, error) {
	if d.pool != nil {
		conn, err := d.pool.Acquire(ctx)
		if err != nil {
			return nil, err
		}
		return &session{pool: conn, socket: conn.Conn().PgConn().Conn()}, nil
	}
	conn, err := d.sql.Conn(ctx)
	if err != nil {
		return nil, err
	}
	s := &session{sql: conn}
	err = s.do(func(c *pgx.Conn) error { s.socket = c.PgConn().Conn(); return nil })
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	return s, nil
}

// session is one connection out of a pool, used by one caller at a time.
type session struct {
	pool   *pgxpool.Conn // exactly one of these two is set
	sql    *sql.Conn
	socket net.Conn
}

// do hands the connection to f.
//
// database/sql lends its connection for the duration of a call only. What f returns, and
// a panic, go around database/sql: it would close the connection, and wait for an open
// transaction while it does.
func (s *session) do(f func(*pgx.Conn) error) error {
	if s.pool != nil {
		return f(s.pool.Conn())
	}
	var (
		result   error
		panicked any
		returned bool
	)
	err := s.sql.Raw(func(driverConn any) error {
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
		panic(panicked) // on behalf of f: a tracer of the application, for example
	case !returned:
		if err == nil {
			err = driver.ErrBadConn
		}
		return err
	}
	return result
}

// pgxConn returns pgx's connection in a connection of database/sql. A driver that wraps
// another, as tracing drivers do, is asked for the one in it.
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

// kill closes the connection under whoever uses it. The server then rolls back, and the
// next statement on it fails.
func (s *session) kill() { _ = s.socket.Close() }

// release gives the connection back. A pool keeps it only where it is idle and outside
// a transaction.
func (s *session) release() {
	if s.pool != nil {
		s.pool.Release()
		return
	}
	_ = s.sql.Raw(func(driverConn any) error {
		conn, err := pgxConn(driverConn)
		if err != nil || conn.IsClosed() || conn.PgConn().IsBusy() || conn.PgConn().TxStatus() != 'I' {
			return driver.ErrBadConn // database/sql closes it
		}
		return nil
	})
	_ = s.sql.Close()
}
