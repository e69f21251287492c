package postgres

import (
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/servers"
	reprisepg "github.com/reprise-go/reprise/store/postgres"
)

// pgGrowth is the effect of a number of requests at a fixed rate on a table.
type pgGrowth struct {
	requests int64
	late     time.Duration // of the last request, behind its time
	hot      float64       // share of the updates that stayed out of the indexes
	row      float64       // bytes a row, of the pages in use and the indexes
	wal      float64       // bytes a request
	dead     int64         // row versions that were not cleaned away
	vacuums  int64
}

func (g pgGrowth) String() string {
	return fmt.Sprintf("%d requests, %.1f %% of the updates HOT, %.0f bytes a row, %.0f bytes of WAL a request, %d dead rows, %d vacuums, at the end %v late",
		g.requests, 100*g.hot, g.row, g.wal, g.dead, g.vacuums, g.late.Round(time.Millisecond))
}

// pgSustain runs operation at a fixed rate and returns the growth of the table.
func pgSustain(t *testing.T, f *pgFixture, table string, rate int, during time.Duration, operation func(store.ClaimRequest)) pgGrowth {
	t.Helper()
	requests := int64(during.Seconds() * float64(rate))
	var (
		wg   sync.WaitGroup
		next atomic.Int64
	)
	log := pgValue[string](t, f.Pool, "SELECT pg_current_wal_insert_lsn()::text")
	start := time.Now()
	for range 64 {
		wg.Go(func() {
			for n := next.Add(1); n <= requests; n = next.Add(1) {
				pgPass(time.Until(start.Add(during * time.Duration(n) / time.Duration(requests))))
				operation(pgClaim())
			}
		})
	}
	wg.Wait()
	g := pgGrowth{requests: requests, late: time.Since(start) - during}
	g.wal = pgValue[float64](t, f.Pool, "SELECT (pg_current_wal_insert_lsn() - $1::pg_lsn)::float8", log) / float64(requests)
	var updates, hot int64
	pgEventually(t, "the statistics arrive", func() bool {
		err := f.Pool.QueryRow(t.Context(), `SELECT n_tup_upd, n_tup_hot_upd, n_dead_tup, vacuum_count + autovacuum_count
			FROM pg_stat_user_tables WHERE schemaname = $1 AND relname = $2`, f.Config.Schema, table).Scan(&updates, &hot, &g.dead, &g.vacuums)
		if err != nil {
			t.Fatal(err)
		}
		return updates >= requests
	})
	g.hot = float64(hot) / float64(updates)
	// Pages in use, not the size of the file: a busy server adds up to 512 empty pages at
	// once.
	g.row = pgValue[float64](t, f.Pool, `SELECT ((SELECT count(DISTINCT (ctid::text::point)[0]) FROM `+f.name(table)+`)::bigint * current_setting('block_size')::bigint
		+ pg_indexes_size($1::regclass))::float8 / greatest(1, (SELECT count(*) FROM `+f.name(table)+`))`, f.name(table))
	return g
}

// TestPostgresSustained runs requests at a fixed rate with a purger beside them, and logs
// the growth of the table: with REPRISE_SOAK for that long, otherwise for seconds. The
// table stops growing once records are purged as fast as they come, and rows that are
// dead are cleaned away. REPRISE_FILLFACTOR compares another fill factor.
func TestPostgresSustained(t *testing.T) {
	t.Parallel()
	labtest.Breadth(t, "long runs")
	during, retention := 8*time.Second, 2*time.Second
	if soak := labtest.Soak(t); soak > 0 {
		during, retention = soak, soak/5
	}
	server := servers.StartPostgres(t, "max_wal_size=2GB", "autovacuum_naptime=5s")
	f := pgSetup(t, server, labtest.MaxConns(16))
	if factor := os.Getenv("REPRISE_FILLFACTOR"); factor != "" {
		f.exec(t, "ALTER TABLE "+f.records()+" SET (fillfactor = "+factor+")")
	}
	f.Config.Purge.Every = time.Second
	st := f.Leased(t)
	pgUse(t, st)
	var half int64
	var claimed atomic.Int64
	for part := 1; part <= 4; part++ {
		g := pgSustain(t, f, reprisepg.DefaultTable, 400, during/4, func(r store.ClaimRequest) {
			r.Retention = retention
			pgMustClaim(t, st, r, store.Claimed)
			claimed.Add(1)
			pgWant(t, "complete", pgComplete(t, st, r, pgBody), nil)
		})
		size := pgValue[int64](t, f.Pool, "SELECT pg_total_relation_size($1::regclass)", f.records())
		rows := pgValue[int64](t, f.Pool, "SELECT count(*) FROM "+f.records())
		t.Logf("part %d: %v; %d records in %d KiB", part, g, rows, size>>10)
		switch part {
		case 2:
			half = size
		case 4:
			if rows > claimed.Load()*4/5 { // two retentions and a round of the purge are five eighths of the time
				t.Errorf("%d of %d records are there: they are not purged as they come", rows, claimed.Load())
			}
			if size > 2*half+1<<20 {
				t.Errorf("the table grew from %d to %d bytes while as many records were purged as came", half, size)
			}
		}
	}
}
