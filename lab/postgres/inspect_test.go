package postgres

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/servers"
)

// TestPostgresListsAlongThePrimaryKey: each statement of a listing reads along the
// primary key, a page takes several of them, and among many completed records an operator
// finds the one that lapsed.
func TestPostgresListsAlongThePrimaryKey(t *testing.T) {
	t.Parallel()
	const records = 12_000
	watch := &pgStatements{}
	f := pgSetup(t, servers.SharedPostgres(t), watch.option)
	st, ctx := f.Leased(t), t.Context()
	f.exec(t, f.pgInsert("(SELECT sha256(n::text::bytea) AS id FROM generate_series(1, $1::bigint) AS n) AS s", nil), records)
	f.exec(t, "ANALYZE "+f.records())
	stuck := labtest.NewClaim()
	stuck.Lease = time.Millisecond
	labtest.WantClaim(t, st, stuck, store.Claimed)
	pgPass(5 * time.Millisecond)

	lapsed := store.Query{States: store.States(store.StateLapsed), Limit: 100}
	page, err := st.List(ctx, lapsed)
	if err != nil || page.Scanned != 10_000 || page.Next == "" {
		t.Errorf("the first page is %+v, %v", page, err)
	}
	found := page.Records
	lapsed.After = page.Next
	page, err = st.List(ctx, lapsed)
	found = append(found, page.Records...)
	if err != nil || page.Scanned != records+1-10_000 || page.Next != "" || len(found) != 1 || found[0].ID != stuck.ID {
		t.Errorf("the second page is %+v, %v, and both found %+v", page, err, found)
	}

	text := watch.find(t, "ORDER BY r.id")
	conn, err := f.Pool.Acquire(ctx)
	labtest.Must(t, err)
	defer conn.Release()
	pgExec(t, conn, "SET plan_cache_mode = force_generic_plan; PREPARE list AS "+text, pgx.QueryExecModeSimpleProtocol)
	plans := []string{pgValue[string](t, conn, "EXPLAIN (FORMAT JSON) EXECUTE list ('', 100)", pgx.QueryExecModeSimpleProtocol)}
	for _, after := range [][]byte{{}, {0x80}} { // behind an ID near the end few rows are left, and a bitmap is cheaper
		plans = append(plans, pgValue[string](t, f.Pool, "EXPLAIN (FORMAT JSON) "+text, pgx.QueryExecModeSimpleProtocol, after, 100))
	}
	for _, plan := range plans {
		scan := regexp.MustCompile(`"Node Type": "([^"]*)",[^{}]*"Relation Name": "reprise_records"`).FindAllStringSubmatch(plan, -1)
		if len(scan) != 1 || scan[0][1] != "Index Scan" || !strings.Contains(plan, `"reprise_records_pkey"`) {
			t.Errorf("a page does not read along the primary key:\n%s", plan)
		}
	}
	pgExec(t, conn, "RESET plan_cache_mode; DEALLOCATE list", pgx.QueryExecModeSimpleProtocol)
}
