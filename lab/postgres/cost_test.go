package postgres

import (
	"context"
	"encoding/json"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/reprise-go/reprise/servers"
	reprisepg "github.com/reprise-go/reprise/store/postgres"
)

// pgBody is a response of the size that the targets are set for.
var pgBody = strings.Repeat("x", 256)

// TestPostgresLogAndRowOfANewKey (P7): how many bytes of the server's log a new key
// writes, and how many its row has, indexes included. Nine of ten completions stay on
// their page and out of the indexes. A replay writes no log. Whole pages, which the
// server adds to the log after a checkpoint, do not count: their number depends on when
// it is.
func TestPostgresLogAndRowOfANewKey(t *testing.T) {
	t.Parallel()
	server := servers.StartPostgres(t, "wal_level=minimal", "max_wal_senders=0", "autovacuum=off", "checkpoint_timeout=1d", "full_page_writes=off")
	f := pgSetup(t, server)
	const times = 500
	written := func(operation func()) int64 {
		operation() // the first reader sets hint bits and fills caches
		before := pgValue[string](t, f.Pool, "SELECT pg_current_wal_insert_lsn()::text")
		for range times {
			operation()
		}
		return pgValue[int64](t, f.Pool, "SELECT (pg_current_wal_insert_lsn() - $1::pg_lsn)::bigint", before)
	}
	st := f.Leased(t)
	var r store.ClaimRequest
	leased := written(func() { r = labtest.Completed(t, st, pgBody) }) / times
	if replays := written(func() { labtest.WantClaim(t, st, labtest.Rival(r), store.Completed) }); replays != 0 {
		t.Errorf("%d replays wrote %d bytes of WAL", times, replays)
	}
	hot := -1.0
	labtest.Eventually(t, "the statistics arrive", func() bool {
		f.Pool.Reset() // a session reports them when it ends
		hot = pgValue[float64](t, f.Pool, "SELECT coalesce(max(n_tup_hot_upd::float8 / n_tup_upd), -1) FROM pg_stat_user_tables WHERE relid = $1::regclass AND n_tup_upd > 500", f.records())
		return hot >= 0
	})
	// Pages in use, not the size of the file, to which a server adds empty pages.
	row := pgValue[float64](t, f.Pool, "SELECT (count(DISTINCT (ctid::text::point)[0]) * current_setting('block_size')::bigint + pg_indexes_size($1::regclass))::float8 / count(*) FROM "+f.records(), f.records())
	t.Logf("a row has %.0f bytes, and %.1f %% of the updates are HOT; bytes of a new key: %d", row, 100*hot, leased)
	if row > 700 || hot < 0.9 || leased > 1050 {
		t.Error("want at most 700 bytes in a row, 90 % of the updates HOT, and at most 1050 bytes of a new key")
	}
}

// TestPostgresIdlePurgeUsesTheIndex: with no expired records a purge reads a handful of
// pages, for any number of records.
func TestPostgresIdlePurgeUsesTheIndex(t *testing.T) {
	t.Parallel()
	f := pgSetup(t, servers.SharedPostgres(t))
	f.exec(t, f.pgInsert("(SELECT n, sha256(n::text::bytea) AS id FROM generate_series(1, 50000) AS n) AS s", map[string]string{"due_at": pgNow + " + " + pgHour + " + n * 1000000::bigint"}))
	f.exec(t, "ANALYZE "+f.records())

	purge := pgStatementOf(t, f, func(st *reprisepg.Store) error {
		_, err := st.Purge(t.Context(), 1)
		return err
	})
	text := pgValue[string](t, f.Pool, "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) "+purge, pgx.QueryExecModeSimpleProtocol, 1000, 0)
	var plans []struct {
		Plan struct {
			Hit  int `json:"Shared Hit Blocks"`
			Read int `json:"Shared Read Blocks"`
		}
	}
	labtest.Must(t, json.Unmarshal([]byte(text), &plans))
	buffers := plans[0].Plan.Hit + plans[0].Plan.Read
	if buffers > 32 || !strings.Contains(text, "reprise_records_due_at") || strings.Contains(text, "Seq Scan") {
		t.Errorf("an idle purge of 50,000 records reads %d buffers, want at most 32 through the index:\n%s", buffers, text)
	}
}

// pgPlan is a node of a plan that ran.
type pgPlan struct {
	Node   string   `json:"Node Type"`
	Rows   float64  `json:"Actual Rows"`
	Loops  float64  `json:"Actual Loops"`
	Filter float64  `json:"Rows Removed by Filter"`
	Joined float64  `json:"Rows Removed by Join Filter"`
	Inner  []pgPlan `json:"Plans"`
}

// work is the number of rows that the nodes of a plan returned or dropped.
func (p *pgPlan) work() float64 {
	sum := (p.Rows + p.Filter + p.Joined) * p.Loops
	for i := range p.Inner {
		sum += p.Inner[i].work()
	}
	return sum
}

// The work of a renewal grows with its leases, whatever the server knows of the table: it
// knows nothing of a new one.
func TestPostgresRenewalsLookAtTheirOwnRecords(t *testing.T) {
	t.Parallel()
	f := pgSetup(t, servers.SharedPostgres(t))
	f.exec(t, "ALTER TABLE "+f.records()+" SET (autovacuum_enabled = off)")
	const records = 5000
	f.exec(t, f.pgInsert("(SELECT sha256(n::text::bytea) AS id FROM generate_series(1, $1::int) AS n) AS s",
		map[string]string{"state": "1", "payload": "NULL::bytea", "lease_until": pgInAnHour}), records)
	renewal := pgStatementOf(t, f, func(st *reprisepg.Store) error {
		_, err := st.Renew(t.Context(), []store.RenewRequest{{ID: store.ID{1}, Owner: store.NewOwner(), Lease: store.MaxDuration}})
		return err
	})
	for _, known := range []bool{false, true} {
		if known {
			f.exec(t, "ANALYZE "+f.records())
		}
		for _, leases := range []int{1, 100, 300, 1000, records} {
			const some = " (SELECT n FROM generate_series(1, $1::int) AS n) AS n"
			ids := pgValue[[][]byte](t, f.Pool, "SELECT array_agg(sha256(n::text::bytea)) FROM"+some, leases)
			owners := pgValue[[][]byte](t, f.Pool, "SELECT array_agg(substr(sha256(n::text::bytea), 1, 16)) FROM"+some, leases)
			durations := pgValue[[]int64](t, f.Pool, "SELECT array_agg(60000000) FROM"+some, leases)
			text := pgValue[string](t, f.Pool, "EXPLAIN (ANALYZE, FORMAT JSON) "+renewal, pgx.QueryExecModeExec, ids, owners, durations)
			var plans []struct{ Plan pgPlan }
			labtest.Must(t, json.Unmarshal([]byte(text), &plans))
			// A dozen nodes see each lease, and a scan of the whole table may be the cheapest for
			// many of them.
			work := plans[0].Plan.work()
			t.Logf("a renewal of %d leases of %d, analyzed %t, works on %.0f rows", leases, records, known, work)
			if work > float64(4*records+20*leases) {
				t.Error(text)
			}
		}
	}
}

// pgStatementOf returns the last statement of a call.
func pgStatementOf(t *testing.T, f *pgFixture, call func(*reprisepg.Store) error) string {
	t.Helper()
	watch := &pgStatements{}
	g := pgOn(labtest.NewPool(t, f.Pool.Config().ConnString(), watch.option), f.Config)
	labtest.Must(t, call(g.Leased(t)))
	return watch.find(t, "")
}

// pgTrace is a tracer that is called before each statement.
type pgTrace func(ctx context.Context, conn *pgx.Conn, statement string)

func (f pgTrace) option(c *pgxpool.Config) { c.ConnConfig.Tracer = f }

// TraceQueryStart implements pgx.QueryTracer.
func (f pgTrace) TraceQueryStart(ctx context.Context, conn *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	f(ctx, conn, data.SQL)
	return ctx
}

// TraceQueryEnd implements pgx.QueryTracer.
func (pgTrace) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// pgStatements records statements.
type pgStatements struct {
	mu   sync.Mutex
	seen []string
}

func (s *pgStatements) option(c *pgxpool.Config) {
	pgTrace(func(_ context.Context, _ *pgx.Conn, statement string) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.seen = append(s.seen, statement)
	}).option(c)
}

func (s *pgStatements) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.seen)
}

// TestPostgresRoundTrips (P7, P8): a new operation of the leased store is two statements
// and two round trips, a replay two, and one while replays are common. A transactional
// policy adds none to a transaction that the handler would have opened and committed
// anyway.
func TestPostgresRoundTrips(t *testing.T) {
	t.Parallel()
	server := servers.SharedPostgres(t)
	trips, statements := &labtest.Trips{}, &pgStatements{}
	f := pgSetup(t, server)
	f.exec(t, "CREATE TABLE "+f.name("effects")+" (n integer)")
	f.Pool = labtest.NewPool(t, server.URL(), pgCounted(trips), statements.option, labtest.MaxConns(4))
	leased, transactional := f.Leased(t), f.Transactional(t)
	effect := "INSERT INTO " + f.name("effects") + " VALUES (1)"

	count := func(what string, want int64, operation func()) {
		t.Helper()
		operation() // pgx prepares a statement on first use
		before := trips.Count()
		operation()
		if got := trips.Count() - before; got != want {
			t.Errorf("%s: %d round trips, want %d", what, got, want)
		}
	}
	r := labtest.NewClaim()
	count("leased, new", 2, func() {
		r = labtest.Completed(t, leased, pgBody)
	})
	replay := func() { labtest.WantClaim(t, leased, labtest.Rival(r), store.Completed) }
	count("leased, replay", 2, replay)
	for range 100 { // now they are common
		replay()
	}
	before := statements.count()
	count("leased, replay while they are common", 1, replay)
	if got := statements.count() - before; got != 2 {
		t.Errorf("two replays: %d statements, want one each", got)
	}
	count("a handler's own transaction", 3, func() {
		err := pgx.BeginFunc(t.Context(), f.Pool, func(tx pgx.Tx) error {
			_, err := tx.Exec(t.Context(), effect)
			return err
		})
		labtest.Must(t, err)
	})
	run := func(complete func(context.Context, store.CompleteRequest) error) func() {
		return func() {
			r = labtest.Claimed(t, transactional)
			if _, err := pgTx(t, transactional, r).Exec(t.Context(), effect); err != nil {
				t.Fatal(err)
			}
			labtest.Must(t, complete(t.Context(), labtest.Completion(r, pgBody)))
		}
	}
	count("transactional, new", 4, run(transactional.Complete))                // claim, BEGIN, the effect, completion with COMMIT
	count("transactional, new, effects undone", 5, run(transactional.Discard)) // claim, BEGIN, the effect, ROLLBACK, completion
}

// pgCounted counts the round trips of a pool.
func pgCounted(trips *labtest.Trips) func(*pgxpool.Config) {
	return func(c *pgxpool.Config) {
		dial := c.ConnConfig.DialFunc
		c.ConnConfig.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := dial(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			return trips.Watch(conn), nil
		}
	}
}
