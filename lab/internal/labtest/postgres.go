package labtest

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/hex"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/reprise-go/reprise/servers"
	reprisepg "github.com/reprise-go/reprise/store/postgres"
)

// Postgres is a new schema on a server, with the tables in it, and a pool that reaches
// it.
type Postgres struct {
	Pool   *pgxpool.Pool
	Config reprisepg.Config
}

// PoolOption changes how a pool is made.
type PoolOption func(*pgxpool.Config)

// MaxConns bounds a pool.
func MaxConns(n int32) PoolOption {
	return func(c *pgxpool.Config) { c.MaxConns = n }
}

// ExecMode sets the default mode in which the pool sends statements.
func ExecMode(m pgx.QueryExecMode) PoolOption {
	return func(c *pgxpool.Config) { c.ConnConfig.DefaultQueryExecMode = m }
}

// SessionParam sets a parameter of the server for the pool's sessions.
func SessionParam(name, value string) PoolOption {
	return func(c *pgxpool.Config) { c.ConnConfig.RuntimeParams[name] = value }
}

// poolConfig is the configuration of a pool of eight connections, but for options.
func poolConfig(tb testing.TB, url string, options []PoolOption) *pgxpool.Config {
	tb.Helper()
	c, err := pgxpool.ParseConfig(url)
	Must(tb, err)
	c.MaxConns = 8
	for _, option := range options {
		option(c)
	}
	return c
}

// NewPool returns a pool that closes with the test, and does not wait for ever for a
// connection that a failed test left out.
func NewPool(tb testing.TB, url string, options ...PoolOption) *pgxpool.Pool {
	tb.Helper()
	c := poolConfig(tb, url, options)
	pool, err := pgxpool.NewWithConfig(context.WithoutCancel(tb.Context()), c)
	Must(tb, err)
	tb.Cleanup(func() {
		done := make(chan struct{})
		go func() { pool.Close(); close(done) }()
		select {
		case <-done:
		case <-time.After(time.Minute):
			tb.Errorf("a pool did not close: %d connections are still out", pool.Stat().AcquiredConns())
		}
	})
	return pool
}

// NewDB returns a *sql.DB over pgx's driver that closes with the test.
func NewDB(tb testing.TB, url string, options ...PoolOption) *sql.DB {
	tb.Helper()
	c := poolConfig(tb, url, options)
	db := stdlib.OpenDB(*c.ConnConfig)
	db.SetMaxOpenConns(int(c.MaxConns))
	db.SetMaxIdleConns(int(c.MaxConns))
	tb.Cleanup(func() {
		for deadline := time.Now().Add(time.Minute); db.Stats().InUse > 0; time.Sleep(time.Millisecond) { //nolint:forbidigo // one that is killed takes a moment
			if time.Now().After(deadline) {
				tb.Errorf("%d connections of a *sql.DB are still out", db.Stats().InUse)
				break
			}
		}
		_ = db.Close()
	})
	return db
}

// SetupPostgres returns a fixture on a server, migrated.
func SetupPostgres(tb testing.TB, server *servers.PostgresServer, options ...PoolOption) *Postgres {
	tb.Helper()
	var b [6]byte
	_, _ = rand.Read(b[:]) // never fails: it ends the program instead
	f := &Postgres{Config: reprisepg.Config{Schema: "t_" + hex.EncodeToString(b[:])}}
	f.Pool = NewPool(tb, server.URL(), options...)
	Must(tb, reprisepg.Migrate(tb.Context(), f.Pool, f.Config))
	return f
}

// Leased returns the store of the fixture.
func (f *Postgres) Leased(tb testing.TB) *reprisepg.Store {
	tb.Helper()
	store, err := reprisepg.New(f.Pool, f.Config)
	Must(tb, err)
	return store
}

// Transactional returns the store of the fixture as a transactional policy uses it.
func (f *Postgres) Transactional(tb testing.TB) *TxStore {
	tb.Helper()
	return NewTxStore(f.Leased(tb))
}
