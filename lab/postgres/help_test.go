package postgres

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/reprise-go/reprise/servers"
	reprisepg "github.com/reprise-go/reprise/store/postgres"
)

func TestMain(m *testing.M) { labtest.Main(m) }

// pgFixture is a new schema with the tables that these tests need.
type pgFixture struct{ *labtest.Postgres }

// pgSetup returns a fixture on a server, migrated.
func pgSetup(tb testing.TB, server *servers.PostgresServer, options ...labtest.PoolOption) *pgFixture {
	tb.Helper()
	return &pgFixture{labtest.SetupPostgres(tb, server, options...)}
}

// pgOn returns a fixture of a pool and a configuration that are there already.
func pgOn(pool *pgxpool.Pool, c reprisepg.Config) *pgFixture {
	return &pgFixture{&labtest.Postgres{Pool: pool, Config: c}}
}

// in returns the fixture over another pool, which sends statements in a mode of pgx.
func (f *pgFixture) in(tb testing.TB, mode pgx.QueryExecMode) *pgFixture {
	tb.Helper()
	return pgOn(labtest.NewPool(tb, f.Pool.Config().ConnString(), labtest.ExecMode(mode)), f.Config)
}

// pgObserve makes the connections of a pool, or of a *sql.DB, observe notices.
func pgObserve(c *pgxpool.Config) { reprisepg.ObserveNotices(c.ConnConfig) }

// records is the name of the table, for a statement of a test.
func (f *pgFixture) records() string { return f.name(reprisepg.DefaultTable) }

// name is the name of something in the schema of the fixture.
func (f *pgFixture) name(table string) string {
	return pgx.Identifier{f.Config.Schema, table}.Sanitize()
}

// exec runs statements that have to succeed.
func (f *pgFixture) exec(tb testing.TB, sql string, args ...any) {
	tb.Helper()
	pgExec(tb, f.Pool, sql, args...)
}

// pgExec runs statements on a pool, a connection or a transaction.
func pgExec(tb testing.TB, on interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}, sql string, args ...any,
) {
	tb.Helper()
	if _, err := on.Exec(context.WithoutCancel(tb.Context()), sql, args...); err != nil {
		tb.Fatalf("%s: %v", sql, err)
	}
}

// pgValue returns the one value that a query of a pool or a transaction has to answer.
func pgValue[T any](tb testing.TB, on interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}, sql string, args ...any,
) T {
	tb.Helper()
	var v T
	if err := on.QueryRow(context.WithoutCancel(tb.Context()), sql, args...).Scan(&v); err != nil {
		tb.Fatalf("%s: %v", sql, err)
	}
	return v
}

// pgTx returns the transaction of a claim as its handler finds it.
func pgTx(tb testing.TB, store *labtest.TxStore, r store.ClaimRequest) pgx.Tx {
	tb.Helper()
	tx, err := reprisepg.Tx(store.Bind(tb.Context(), r.ID, r.Owner))
	labtest.Must(tb, err)
	return tx
}

// pgPass lets time pass: the servers have their own clocks.
func pgPass(d time.Duration) { time.Sleep(d) } //nolint:forbidigo // the one sleep of these tests

// pgDamage is a statement that damages the row of $1.
func (f *pgFixture) pgDamage(change string) string {
	return fmt.Sprintf("UPDATE %s SET %s WHERE id = $1", f.records(), change)
}

// The clocks of the table, in microseconds since 1970: when the transaction began, and at
// the moment. An hour has pgHour.
const (
	pgNow  = "(date_part('epoch', now()) * 1000000)::bigint"
	pgLate = "(date_part('epoch', clock_timestamp()) * 1000000)::bigint"
	pgHour = "3600000000"

	pgInAnHour = pgNow + " + " + pgHour
	pgEnded    = "lease_until = " + pgNow + ", valid_until = " + pgNow + ", due_at = " + pgNow // of a record
)

// pgInsert is a statement that inserts a row for each row of from, such as "(SELECT
// $1::bytea AS id) AS s": a completed record of this hour, but for the columns that are
// given.
func (f *pgFixture) pgInsert(from string, given map[string]string) string {
	row := map[string]string{
		"id": "id", "owner": "substr(id, 1, 16)", "fingerprint": "id", "version": "1", "state": "2", "attempt": "1", "fence": "1", "revision": "1",
		"payload": "''", "claimed_at": pgNow, "lease_until": pgNow, "replay_until": pgNow + " + " + pgHour, "valid_until": pgNow + " + " + pgHour,
		"due_at": pgNow + " + " + pgHour, "retention": pgHour, "horizon": "0", "at_most_once": "0", "label": "''", "description": "''", "reason": "''",
	}
	maps.Copy(row, given)
	columns := slices.Sorted(maps.Keys(row))
	values := make([]string, len(columns))
	for i, c := range columns {
		values[i] = row[c]
	}
	return "INSERT INTO " + f.records() + " (" + strings.Join(columns, ", ") + ") SELECT " + strings.Join(values, ", ") + " FROM " + from
}

// manyCallers are enough for batches.
const manyCallers = 64

// pgTogether calls f from many goroutines at once.
func pgTogether(n int, f func(i int)) {
	var wg sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		wg.Go(func() { <-start; f(i) })
	}
	close(start)
	wg.Wait()
}
