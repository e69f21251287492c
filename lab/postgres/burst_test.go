package postgres

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/servers"
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

// at makes it panic, and reports whether the last panic that was asked for is still to
// come.
func (p *pgPanicTracer) at(n int64) (pending bool) { return p.Swap(n) > 0 }

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
	for kind, sql := range map[string]bool{"pgx": false, "sql": true} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			tracer := &pgPanicTracer{}
			pgSetup(t, server).handlers(t, server.URL(), sql, func(c *pgxpool.Config) { c.ConnConfig.Tracer = tracer }).PanicsLeaveNothing(t, tracer.at)
		})
	}
}

// pgPanics reports whether f panicked.
func pgPanics(f func()) (panicked bool) {
	defer func() { panicked = recover() != nil }()
	f()
	return false
}
