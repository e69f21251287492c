package postgres

import (
	"context"
	"database/sql"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	reprisehttp "github.com/reprise-go/reprise/adapters/nethttp"
	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/servers"
	reprisepg "github.com/reprise-go/reprise/store/postgres"
)

// TestPostgresBurst: more orders at once than the pool has connections all succeed, one
// after the other.
func TestPostgresBurst(t *testing.T) {
	t.Parallel()
	server := servers.SharedPostgres(t)
	for _, burst := range []struct{ orders, conns int }{{10, 4}, {64, 10}} {
		f := pgSetup(t, server, labtest.MaxConns(int32(burst.conns)))
		f.exec(t, "CREATE TABLE "+f.name("effects")+" (n integer PRIMARY KEY)")
		store := f.Leased(t)
		f.exec(t, "SELECT 1") // a first connection
		answers := pgOrders(t, f, store, burst.orders)
		var waits []time.Duration
		for _, a := range answers {
			if a.status != http.StatusCreated {
				t.Errorf("%d orders over %d connections: an order was answered %d", burst.orders, burst.conns, a.status)
			}
			waits = append(waits, a.took)
		}
		slices.Sort(waits)
		t.Logf("%d orders at once over %d connections, handlers of 50ms: p50 %v, p99 %v",
			burst.orders, burst.conns, waits[len(waits)/2], waits[len(waits)*99/100])
		if n := f.effects(t); n != burst.orders {
			t.Errorf("%d effects of %d orders", n, burst.orders)
		}
		if slots := pgSlots(store); slots.Used != 0 || slots.Waiting != 0 {
			t.Errorf("transactions afterwards: %+v", slots)
		}
	}
}

// pgAnswer is the response that a client of pgOrders got, and its latency.
type pgAnswer struct {
	status int
	took   time.Duration
}

// pgOrders posts so many different orders at once to a service whose handler takes 50
// ms.
func pgOrders(t *testing.T, f *pgFixture, store store.Store, orders int) []pgAnswer {
	t.Helper()
	// An order waits for the handlers before it, however busy this machine is.
	engine, err := reprise.New(store, reprise.Config{ClaimTimeout: 20 * time.Second})
	pgWant(t, "engine", err, nil)
	defer func() { pgWant(t, "close", engine.Close(context.WithoutCancel(t.Context())), nil) }()
	guard, err := protocol.Over(engine, protocol.Config{Required: true, Transactional: true})
	pgWant(t, "guard", err, nil)
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		tx, err := reprisepg.Tx(r.Context())
		if err != nil {
			t.Errorf("the handler has no transaction: %v", err)
			return
		}
		if _, err := tx.Exec(r.Context(), "INSERT INTO "+f.name("effects")+" SELECT coalesce($1::integer, 0) FROM pg_sleep(0.05)", r.Header.Get("X-Order")); err != nil {
			t.Errorf("the handler: %v", err)
		}
		w.WriteHeader(http.StatusCreated)
	})
	service := httptest.NewServer(reprisehttp.Middleware(guard, func(*http.Request) (string, error) { return "tenant", nil })(handler))
	defer service.Close()
	client := service.Client()
	client.Transport.(*http.Transport).MaxIdleConnsPerHost = orders //nolint:forcetypeassert // httptest makes it

	answers := make([]pgAnswer, orders)
	start := make(chan struct{})
	var wg sync.WaitGroup
	for i := range orders {
		wg.Go(func() {
			req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, service.URL, http.NoBody)
			req.Header.Set("Idempotency-Key", fmt.Sprintf(`"order-%d"`, i))
			req.Header.Set("X-Order", strconv.Itoa(i))
			<-start
			begun := time.Now()
			resp, err := client.Do(req)
			if err != nil {
				t.Errorf("order %d: %v", i, err)
				return
			}
			_ = resp.Body.Close()
			answers[i] = pgAnswer{resp.StatusCode, time.Since(begun)}
		})
	}
	close(start)
	wg.Wait()
	return answers
}

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
		r := pgClaim()
		pgMustClaim(t, st, r, store.Claimed)
		for name, want := range map[string]string{
			"statement_timeout": want, "idle_in_transaction_session_timeout": want, "lock_timeout": own,
		} {
			var got string
			if err := pgTx(t, st, r).QueryRow(t.Context(), "SHOW "+name).Scan(&got); err != nil {
				t.Fatal(err)
			}
			if got != want {
				t.Errorf("a session with %s has %s = %s in an attempt, want %s", own, name, got, want)
			}
		}
		pgWant(t, "complete", pgComplete(t, st, r, "answer"), nil)
		for _, conn := range g.Pool.AcquireAllIdle(t.Context()) {
			for name, want := range map[string]string{"statement_timeout": own, "idle_in_transaction_session_timeout": own} {
				var got string
				pgWant(t, "show", conn.QueryRow(t.Context(), "SHOW "+name).Scan(&got), nil)
				if got != want {
					t.Errorf("a session with %s has %s = %s after an attempt", own, name, got)
				}
			}
			conn.Release()
		}
	}
}

// TestPostgresOneTransactionID: the effects of a request and its record have one
// transaction ID.
func TestPostgresOneTransactionID(t *testing.T) {
	t.Parallel()
	f, st := pgTxSetup(t)
	r := pgClaim()
	pgMustClaim(t, st, r, store.Claimed)
	tx := pgTx(t, st, r)
	f.insert(t, tx, 1)
	var want string // a subtransaction that writes has its own ID
	if err := tx.QueryRow(t.Context(), "SELECT pg_current_xact_id()::xid::text").Scan(&want); err != nil {
		t.Fatal(err)
	}
	pgWant(t, "complete", pgComplete(t, st, r, "answer"), nil)
	for what, table := range map[string]string{"effect": f.name("effects"), "record": f.records()} {
		if got := pgValue[string](t, f.Pool, "SELECT xmin::text FROM "+table); got != want {
			t.Errorf("the %s has the transaction ID %s, want %s", what, got, want)
		}
	}
}

// pgPanicTracer panics with the n-th statement after it was armed.
type pgPanicTracer struct {
	mu   sync.Mutex
	left int // 0: not armed
}

func (p *pgPanicTracer) arm(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.left = n
}

func (p *pgPanicTracer) count() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.left > 0 {
		if p.left--; p.left == 0 {
			panic("the tracer is broken")
		}
	}
}

// TraceQueryStart implements pgx.QueryTracer.
func (p *pgPanicTracer) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	p.count()
	return ctx
}

// TraceQueryEnd implements pgx.QueryTracer.
func (p *pgPanicTracer) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) { p.count() }

// TraceBatchStart implements pgx.BatchTracer.
func (p *pgPanicTracer) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	p.count()
	return ctx
}

// TraceBatchQuery implements pgx.BatchTracer.
func (p *pgPanicTracer) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {
	p.count()
}

// TraceBatchEnd implements pgx.BatchTracer.
func (p *pgPanicTracer) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) { p.count() }

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
				r := pgClaim()
				pgMustClaim(t, st, r, store.Claimed)
				ctx := st.Bind(t.Context(), r.ID, r.Owner)
				call := func() { _, _ = reprisepg.Tx(ctx); _, _ = reprisepg.SQLTx(ctx) }
				if at != "begin" {
					call()
					call = func() { _ = st.Complete(t.Context(), pgCompletion(r, "answer")) }
				}
				if at == "rollback" {
					call = func() { _ = st.Release(t.Context(), r.ID, r.Owner) }
				}
				tracer.arm(n + 1)
				if panicked := pgPanics(call); n == 0 && !panicked {
					t.Errorf("sql.DB %t: the tracer did not panic at the first event of a %s", sqlDB, at)
				}
				tracer.arm(0)
				if at == "begin" {
					_ = st.Release(t.Context(), r.ID, r.Owner)
				}
				if slots := pgSlots(st.TransactorStore.(*reprisepg.Store)); slots.Used != 0 {
					t.Fatalf("sql.DB %t: %d slots are lost after a panic at the event %d of a %s", sqlDB, slots.Used, n+1, at)
				}
			}
		}
		pgEventually(t, "every connection is back", func() bool { return pool.Stat().AcquiredConns() == 0 && (db == nil || db.Stats().InUse == 0) })
		r := pgClaim()
		pgMustClaim(t, st, r, store.Claimed)
		pgWant(t, "complete", pgComplete(t, st, r, "answer"), nil)
	}
}

// pgPanics reports whether f panicked.
func pgPanics(f func()) (panicked bool) {
	defer func() { panicked = recover() != nil }()
	f()
	return false
}
