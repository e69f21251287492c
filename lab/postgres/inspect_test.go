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

// pgRecords puts n completed records into the table.
func (f *pgFixture) pgRecords(t *testing.T, n int) {
	t.Helper()
	f.exec(t, f.pgInsert("(SELECT n, sha256(n::text::bytea) AS id FROM generate_series(1, $1::bigint) AS n) AS s",
		map[string]string{"fence": "n", "payload": "repeat('x', 256)::bytea"}), n)
}

// pgPages follows a listing to its end. It returns the records, and how many were looked
// at.
func pgPages(t *testing.T, st store.Inspector, q store.Query) (found []store.Record, scanned int) {
	t.Helper()
	ctx, cancel := pgCall(t)
	defer cancel()
	for {
		page, err := st.List(ctx, q)
		labtest.Must(t, err)
		if len(page.Records) > q.Limit || page.Scanned > 10_000 {
			t.Fatalf("a page of %d records looked at %d", len(page.Records), page.Scanned)
		}
		found, scanned = append(found, page.Records...), scanned+page.Scanned
		if page.Next == "" {
			return found, scanned
		}
		q.After = page.Next
	}
}

// TestPostgresListsAlongThePrimaryKey: each statement of a listing reads along the
// primary key, a page takes several of them, and among many completed records an operator
// finds the one that lapsed. The number of all records is an estimate once there are
// statistics.
func TestPostgresListsAlongThePrimaryKey(t *testing.T) {
	t.Parallel()
	const records = 12_000
	watch := &pgStatements{}
	f := pgSetup(t, servers.SharedPostgres(t), watch.option)
	st, ctx := f.Leased(t), t.Context()
	f.pgRecords(t, 1200)
	page, err := st.List(ctx, store.Query{Limit: 1})
	if err != nil || page.Total != 0 || page.Scanned != 1 || page.Next == "" {
		t.Errorf("a first page of a table without statistics is %+v, %v", page, err)
	}
	if page, err = st.List(ctx, store.Query{Limit: 2000}); err != nil || page.Total != 1200 || page.Next != "" {
		t.Errorf("a listing of one page knows %d records and goes on at %q, %v", page.Total, page.Next, err)
	}
	f.exec(t, "DELETE FROM "+f.records())
	f.pgRecords(t, records)
	f.exec(t, "ANALYZE "+f.records())
	stuck := labtest.NewClaim()
	stuck.Lease = time.Millisecond
	labtest.WantClaim(t, st, stuck, store.Claimed)
	pgPass(5 * time.Millisecond)

	lapsed := store.Query{States: store.States(store.StateLapsed), Limit: 100}
	page, err = st.List(ctx, lapsed)
	if err != nil || page.Scanned != 10_000 || page.Next == "" || page.Total < records*9/10 || page.Total > records*11/10 {
		t.Errorf("the first page is %+v, %v", page, err)
	}
	if found, scanned := pgPages(t, st, lapsed); len(found) != 1 || found[0].ID != stuck.ID || scanned != records+1 {
		t.Errorf("found %+v among %d records", found, scanned)
	}
	for _, limit := range []int{700, 1200, 10_000} {
		found, scanned := pgPages(t, st, store.Query{Limit: limit})
		ids := map[store.ID]bool{}
		for _, r := range found {
			ids[r.ID] = true
		}
		if len(found) != records+1 || len(ids) != records+1 || scanned != records+1 {
			t.Errorf("pages of %d list %d records, %d of them once, and look at %d", limit, len(found), len(ids), scanned)
		}
	}

	text := watch.find(t, "ORDER BY r.id")
	conn, err := f.Pool.Acquire(ctx)
	labtest.Must(t, err)
	defer conn.Release()
	pgExec(t, conn, "SET plan_cache_mode = force_generic_plan; PREPARE list AS "+text, pgx.QueryExecModeSimpleProtocol)
	for _, after := range [][]byte{{}, stuck.ID[:]} {
		pgKeyOrder(t, pgValue[string](t, f.Pool, "EXPLAIN (FORMAT JSON) "+text, pgx.QueryExecModeSimpleProtocol, after, 100))
		var plan string
		err := conn.QueryRow(ctx, "EXPLAIN (FORMAT JSON) EXECUTE list ($1, 100)", pgx.QueryExecModeSimpleProtocol, after).Scan(&plan)
		labtest.Must(t, err)
		pgKeyOrder(t, plan)
	}
	pgExec(t, conn, "RESET plan_cache_mode; DEALLOCATE list", pgx.QueryExecModeSimpleProtocol)
}

// pgKeyOrder fails the test unless a plan reads the records along their primary key.
func pgKeyOrder(t *testing.T, plan string) {
	t.Helper()
	scan := regexp.MustCompile(`"Node Type": "([^"]*)",[^{}]*"Relation Name": "reprise_records"`).FindAllStringSubmatch(plan, -1)
	if len(scan) != 1 || scan[0][1] != "Index Scan" || !strings.Contains(plan, `"reprise_records_pkey"`) {
		t.Errorf("a page does not read along the primary key:\n%s", plan)
	}
}
