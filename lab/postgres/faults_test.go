package postgres

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/reprise-go/reprise/servers"
	reprisepg "github.com/reprise-go/reprise/store/postgres"
)

// pgLedger is a workload on the transactional store whose effects can be counted: each
// operation inserts one row with its key and its owner, and its client tries until it has
// a result.
type pgLedger struct {
	*pgFixture
	stores []*labtest.TxStore // one for each process

	operations atomic.Int64
	tries      atomic.Int64
	rolledBack atomic.Int64
	unknown    atomic.Int64
}

// newPgLedger makes the table of effects, and as many stores, each over a pool or a
// *sql.DB of its own.
func newPgLedger(t *testing.T, f *pgFixture, url string, processes int, sql bool, options ...labtest.PoolOption) *pgLedger {
	t.Helper()
	l := &pgLedger{pgFixture: f}
	f.exec(t, "CREATE TABLE "+f.name("effects")+" (id bytea NOT NULL, owner bytea NOT NULL)")
	for range processes {
		if sql {
			l.stores = append(l.stores, f.transactionalSQL(t, labtest.NewDB(t, url, options...)))
		} else {
			l.stores = append(l.stores, pgOn(labtest.NewPool(t, url, options...), f.Config).Transactional(t))
		}
	}
	return l
}

// pgExecTx executes a statement in the transaction of the attempt that ctx belongs to,
// of whichever kind it is.
func pgExecTx(ctx context.Context, statement string, args ...any) error {
	tx, err := reprisepg.Tx(ctx)
	if err == nil {
		_, err = tx.Exec(ctx, statement, args...)
		return err
	}
	sqlTx, sqlErr := reprisepg.SQLTx(ctx)
	if errors.Is(sqlErr, store.ErrInvalid) {
		return err
	}
	if sqlErr == nil {
		_, sqlErr = sqlTx.ExecContext(ctx, statement, args...)
	}
	return sqlErr
}

// work runs operations in clients goroutines until stop is closed, and returns when each
// has its result.
func (l *pgLedger) work(t *testing.T, clients int, stop <-chan struct{}) {
	t.Helper()
	var wg sync.WaitGroup
	for i := range clients {
		wg.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
					l.operate(t, labtest.NewClaim(), i+n)
				}
			}
		})
	}
	wg.Wait()
}

// operate retries one operation, on whichever process, until it is answered: by its own
// completion or by a replay.
func (l *pgLedger) operate(t *testing.T, r store.ClaimRequest, first int) {
	l.operations.Add(1)
	r.Lease = 2 * time.Second // of an attempt whose end is not known
	deadline := time.Now().Add(60 * time.Second)
	for try := first; ; try++ {
		if time.Now().After(deadline) {
			t.Errorf("no answer to an operation within a minute")
			return
		}
		l.tries.Add(1)
		r.Owner = store.NewOwner()
		if l.attempt(t, l.stores[try%len(l.stores)], r) {
			return
		}
		pgPass(rand.N(5 * time.Millisecond))
	}
}

// attempt is one request of the client, and reports whether it was answered.
func (l *pgLedger) attempt(t *testing.T, st *labtest.TxStore, r store.ClaimRequest) bool {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	got, err := st.Claim(ctx, r)
	switch {
	case err != nil:
		_ = st.Release(ctx, r.ID, r.Owner)
		return false
	case got.Outcome == store.Completed:
		return true
	case got.Outcome != store.Claimed:
		return false
	}
	if err = pgExecTx(st.Bind(ctx, r.ID, r.Owner), "INSERT INTO "+l.name("effects")+" VALUES ($1, $2)", r.ID[:], r.Owner[:]); err != nil {
		_ = st.Release(ctx, r.ID, r.Owner)
		return false
	}
	err = st.Complete(ctx, labtest.Completion(r, string(r.Owner[:])))
	switch {
	case errors.Is(err, store.ErrNotApplied), errors.Is(err, store.ErrLeaseLost):
		l.rolledBack.Add(1)
	case errors.Is(err, store.ErrUnknown), errors.Is(err, store.ErrUnavailable):
		l.unknown.Add(1)
	case err != nil:
		t.Errorf("complete: %v", err)
	}
	return err == nil
}

// verify demands one effect for each operation, and that it is of the owner whose result
// is kept.
func (l *pgLedger) verify(t *testing.T) {
	t.Helper()
	operations := int(l.operations.Load())
	effects, records := l.name("effects"), l.records()
	for what, want := range map[string]int{
		"SELECT count(*) FROM " + effects:                                                 operations,
		"SELECT count(DISTINCT id) FROM " + effects:                                       operations,
		"SELECT count(*) FROM " + records:                                                 operations,
		"SELECT count(*) FROM " + records + " r JOIN " + effects + " e USING (id, owner)": operations,
		"SELECT count(*) FROM " + records + " WHERE payload <> owner":                     0,
	} {
		if got := pgValue[int](t, l.Pool, what); got != want {
			t.Errorf("%s: %d, want %d", what, got, want)
		}
	}
	t.Logf("%d operations, %d tries, %d rolled back, %d with an unknown outcome, effects per key = 1",
		operations, l.tries.Load(), l.rolledBack.Load(), l.unknown.Load())
}

// TestPostgresTransactionalKills (G4): sessions are terminated at random moments, and
// each operation has its effect once.
func TestPostgresTransactionalKills(t *testing.T) {
	t.Parallel()
	server := servers.SharedPostgres(t)
	for kind, sql := range map[string]bool{"pgx": false, "sql": true} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			f := pgSetup(t, server)
			name := kind + "_kills_" + f.Config.Schema
			l := newPgLedger(t, f, server.URL(), 3, sql, labtest.MaxConns(6), labtest.SessionParam("application_name", name))
			l.kill(t, labtest.Times(200, 60), "application_name = '"+name+"'")
		})
	}
}

// kill ends enough of the sessions that where describes, while operations run, and counts
// their effects.
func (l *pgLedger) kill(t *testing.T, enough int, where string) {
	t.Helper()
	stop := make(chan struct{})
	killed := 0
	go func() {
		defer close(stop)
		until := time.Now().Add(labtest.Soak(t))
		limit := until.Add(5 * time.Minute)
		for killed < enough || time.Now().Before(until) {
			// Only busy ones: to end an idle one is no fault.
			killed += pgTerminate(t, l.Pool, where+" AND state <> 'idle'")
			if time.Now().After(limit) {
				t.Errorf("only %d sessions were killed", killed)
				return
			}
			pgPass(rand.N(20 * time.Millisecond))
		}
	}()
	l.work(t, 8, stop)
	l.verify(t)
	t.Logf("%d sessions were killed", killed)
}

// pgTerminate kills one session at random and returns how many it was.
func pgTerminate(t *testing.T, pool *pgxpool.Pool, where string) int {
	t.Helper()
	ctx, cancel := pgCall(t)
	defer cancel()
	tag, err := pool.Exec(ctx, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE `+where+` ORDER BY random() LIMIT 1`)
	if err != nil {
		t.Errorf("terminate: %v", err)
	}
	return int(tag.RowsAffected())
}

// TestPostgresTransactionalCrash (G4): the server crashes in the middle of the work and
// recovers, and each operation has its effect once.
func TestPostgresTransactionalCrash(t *testing.T) {
	t.Parallel()
	server := servers.StartPostgres(t)
	f := pgSetup(t, server)
	l := newPgLedger(t, f, server.URL(), 2, false, labtest.MaxConns(6))
	stop := make(chan struct{})
	go func() {
		defer close(stop)
		for range 3 {
			before := l.operations.Load()
			labtest.Eventually(t, "some operations", func() bool { return l.operations.Load() > before+50 })
			server.Crash(t)
			server.Restart(t)
		}
	}()
	l.work(t, 6, stop)
	f.Pool.Reset()
	l.verify(t)
}

// TestPostgresHalfOpen: the server ends the transaction of a client that is gone without
// a word in the middle of a statement, and frees its locks, with statement_timeout.
func TestPostgresHalfOpen(t *testing.T) {
	t.Parallel()
	server := servers.SharedPostgres(t)
	f := pgSetup(t, server)
	f.Config.TxTimeout = 2 * time.Second
	f.exec(t, "CREATE TABLE "+f.name("effects")+" (n integer PRIMARY KEY)")
	proxy := servers.StartProxy(t, server.Addr())
	defer proxy.Cut()
	gone := pgOn(labtest.NewPool(t, proxy.URL(server.URL())), f.Config).Transactional(t)
	r := labtest.NewClaim()
	labtest.WantClaim(t, gone, r, store.Claimed)
	tx := pgTx(t, gone, r)
	f.insert(t, tx, 1)
	sleep := "SELECT pg_sleep(60), '" + f.Config.Schema + "'" // tells it from those of other tests
	statement := make(chan error, 1)
	go func() {
		_, err := tx.Exec(t.Context(), sleep)
		statement <- err
	}()
	labtest.Eventually(t, "the statement runs", func() bool {
		return pgValue[int](t, f.Pool, "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND query = $1", sleep) == 1
	})
	proxy.Set(t, servers.Swallow)
	f.exec(t, f.insertion(), 1) // it waits for the row of the other
	if err := <-statement; err == nil {
		t.Error("the statement of a client that is gone succeeded")
	}
	proxy.Set(t, servers.Forward) // or the release waits for a new connection
	_ = gone.Release(t.Context(), r.ID, r.Owner)
}
