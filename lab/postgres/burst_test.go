package postgres

import (
	"context"
	"database/sql"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/servers"
	reprisepg "github.com/reprise-go/reprise/store/postgres"
)

// TestPostgresStricterLimitsStand: the limits of an attempt are TxTimeout where the
// session has none or weaker ones, and the session's own where they are stricter.
func TestPostgresStricterLimitsStand(t *testing.T) {
	t.Parallel()
	server := servers.SharedPostgres(t)
	f := pgSetup(t, server)
	f.Config.TxTimeout = 20 * time.Second
	for own, want := range map[string]string{"0": "20s", "10s": "10s", "15s": "15s", "20s": "20s", "1min": "20s", "2d": "20s"} {
		g := pgOn(labtest.NewPool(t, server.URL(), labtest.SessionParam("statement_timeout", own),
			labtest.SessionParam("idle_in_transaction_session_timeout", own), labtest.SessionParam("lock_timeout", own)), f.Config)
		st := g.Transactional(t)
		r := labtest.Claimed(t, st)
		for name, want := range map[string]string{
			"statement_timeout": want, "idle_in_transaction_session_timeout": want, "lock_timeout": own,
		} {
			if got := pgValue[string](t, pgTx(t, st, r), "SHOW "+name); got != want {
				t.Errorf("a session with %s has %s = %s in an attempt, want %s", own, name, got, want)
			}
		}
		labtest.Must(t, labtest.Complete(t, st, r, "answer"))
		for _, conn := range g.Pool.AcquireAllIdle(t.Context()) {
			for _, name := range []string{"statement_timeout", "idle_in_transaction_session_timeout"} {
				if got := pgValue[string](t, conn, "SHOW "+name); got != own {
					t.Errorf("a session with %s has %s = %s after an attempt", own, name, got)
				}
			}
			conn.Release()
		}
	}
}

// pgPanicTracer panics at the n-th event after it was set to n.
type pgPanicTracer struct{ atomic.Int64 }

func (p *pgPanicTracer) count() {
	if p.Add(-1) == 0 {
		panic("the tracer is broken")
	}
}

// TraceQueryStart implements pgx.QueryTracer.
func (p *pgPanicTracer) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	p.count()
	return ctx
}

// TraceQueryEnd implements pgx.QueryTracer.
func (p *pgPanicTracer) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) { p.count() }

// TestPostgresTracerPanics: a tracer of the application that panics, wherever it does,
// loses neither a slot nor a connection.
func TestPostgresTracerPanics(t *testing.T) {
	t.Parallel()
	server := servers.SharedPostgres(t)
	f := pgSetup(t, server)
	for _, sqlDB := range []bool{false, true} {
		tracer := &pgPanicTracer{}
		pool := labtest.NewPool(t, server.URL(), func(c *pgxpool.Config) { c.ConnConfig.Tracer = tracer })
		st := pgOn(pool, f.Config).Transactional(t)
		var db *sql.DB
		if sqlDB {
			db = stdlib.OpenDB(*pool.Config().ConnConfig)
			t.Cleanup(func() { _ = db.Close() })
			db.SetMaxOpenConns(40)
			st = f.transactionalSQL(t, db)
		}
		for n := range 10 {
			for _, at := range []string{"begin", "commit", "rollback"} {
				r := labtest.Claimed(t, st)
				ctx := st.Bind(t.Context(), r.ID, r.Owner)
				call := func() { _, _ = reprisepg.Tx(ctx); _, _ = reprisepg.SQLTx(ctx) }
				if at != "begin" {
					call()
					call = func() { _ = st.Complete(t.Context(), labtest.Completion(r, "answer")) }
				}
				if at == "rollback" {
					call = func() { _ = st.Release(t.Context(), r.ID, r.Owner) }
				}
				tracer.Store(int64(n) + 1)
				if panicked := pgPanics(call); n == 0 && !panicked {
					t.Errorf("sql.DB %t: the tracer did not panic at the first event of a %s", sqlDB, at)
				}
				tracer.Store(0)
				if at == "begin" {
					_ = st.Release(t.Context(), r.ID, r.Owner)
				}
				if use := st.Usage(); slices.ContainsFunc(use, func(u store.Usage) bool { return u.Name == "slots" && u.Used != 0 }) {
					t.Fatalf("sql.DB %t: slots are lost after a panic at the event %d of a %s: %+v", sqlDB, n+1, at, use)
				}
			}
		}
		labtest.Eventually(t, "every connection is back", func() bool { return pool.Stat().AcquiredConns() == 0 && (db == nil || db.Stats().InUse == 0) })
		labtest.Completed(t, st, "answer")
	}
}

// pgPanics reports whether f panicked.
func pgPanics(f func()) (panicked bool) {
	defer func() { panicked = recover() != nil }()
	f()
	return false
}
