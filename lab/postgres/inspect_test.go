package postgres

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/servers"
)

// pgInspector is the interface of an operator's program to a store.
type pgInspector interface {
	store.Store
	store.Inspector
}

// pgInspectors are both stores of a fixture.
func pgInspectors(t *testing.T, f *pgFixture) map[string]pgInspector {
	t.Helper()
	return map[string]pgInspector{"leased": f.Leased(t)}
}

// pgRecords puts n completed records into the table.
func (f *pgFixture) pgRecords(t *testing.T, n int) {
	t.Helper()
	f.exec(t, f.pgInsert("(SELECT n, sha256(n::text::bytea) AS id FROM generate_series(1, $1::bigint) AS n) AS s",
		map[string]string{"fence": "n", "payload": "repeat('x', 256)::bytea"}), n)
}

// pgPages follows a listing to its end. It returns the records, and the number of pages.
func pgPages(t *testing.T, store store.Inspector, q store.Query) (found []store.Record, pages, scanned int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		page, err := store.List(ctx, q)
		pgWant(t, "list", err, nil)
		if len(page.Records) > q.Limit || page.Scanned > 10_000 {
			t.Fatalf("a page of %d records looked at %d", len(page.Records), page.Scanned)
		}
		found, pages, scanned = append(found, page.Records...), pages+1, scanned+page.Scanned
		if page.Next == "" {
			return found, pages, scanned
		}
		q.After = page.Next
	}
}

// TestPostgresListFindsTheLapsedOne: among 300,000 completed records an operator finds
// the one that lapsed, in some thirty calls of which the first takes well under a second;
// each reads along the primary key.
func TestPostgresListFindsTheLapsedOne(t *testing.T) {
	t.Parallel()
	labtest.Breadth(t, "tests with many records")
	const records = 300_000
	server := servers.SharedPostgres(t)
	f := pgSetup(t, server)
	f.pgRecords(t, records)
	f.exec(t, "ANALYZE "+f.records())
	st := f.Leased(t)
	stuck := pgClaim()
	stuck.Lease, stuck.Label = time.Millisecond, "orders"
	pgMustClaim(t, st, stuck, store.Claimed)
	pgPass(5 * time.Millisecond)

	lapsed := store.Query{States: store.States(store.StateLapsed), Limit: 100}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	start := time.Now()
	page, err := st.List(ctx, lapsed)
	took := time.Since(start)
	pgWant(t, "list", err, nil)
	if page.Scanned != 10_000 || page.Next == "" {
		t.Errorf("the first page took %v, looked at %d records and goes on at %q", took, page.Scanned, page.Next)
	}
	if page.Total < records*9/10 || page.Total > records*11/10 {
		t.Errorf("an estimate of %d for %d records", page.Total, records)
	}
	for name, st := range pgInspectors(t, f) {
		start = time.Now()
		found, pages, scanned := pgPages(t, st, lapsed)
		if len(found) != 1 || found[0].ID != stuck.ID || found[0].State != store.StateLapsed || found[0].Label != "orders" {
			t.Errorf("%s: found %+v", name, found)
		}
		if pages > 32 || scanned != records+1 {
			t.Errorf("%s: %d pages looked at %d records", name, pages, scanned)
		}
		t.Logf("%s: %d records in %d pages and %v, the first in %v", name, scanned, pages, time.Since(start), took)
	}

	watch := &pgStatements{}
	g := pgOn(labtest.NewPool(t, server.URL(), watch.option), f.Config)
	_, err = g.Leased(t).List(ctx, lapsed)
	pgWant(t, "list", err, nil)
	text := watch.find(t, "ORDER BY r.id")
	for _, after := range [][]byte{{}, stuck.ID[:]} {
		pgKeyOrder(t, pgValue[string](t, f.Pool, "EXPLAIN (FORMAT JSON) "+text, pgx.QueryExecModeSimpleProtocol, after, 100))
	}
	prepared, err := f.Pool.Acquire(ctx)
	pgWant(t, "acquire", err, nil)
	defer prepared.Release()
	var plan string
	_, err = prepared.Exec(ctx, "SET plan_cache_mode = force_generic_plan; PREPARE list AS "+text)
	pgWant(t, "prepare", err, nil)
	err = prepared.QueryRow(ctx, `EXPLAIN (FORMAT JSON) EXECUTE list ('\x', 100)`, pgx.QueryExecModeSimpleProtocol).Scan(&plan)
	pgWant(t, "explain", err, nil)
	pgKeyOrder(t, plan)
	_, err = prepared.Exec(ctx, "RESET plan_cache_mode; DEALLOCATE list")
	pgWant(t, "reset", err, nil)
}

// pgKeyOrder fails the test unless a plan reads the records along their primary key.
func pgKeyOrder(t *testing.T, plan string) {
	t.Helper()
	scan := regexp.MustCompile(`"Node Type": "([^"]*)",[^{}]*"Relation Name": "reprise_records"`).FindAllStringSubmatch(plan, -1)
	if len(scan) != 1 || scan[0][1] != "Index Scan" || !strings.Contains(plan, `"reprise_records_pkey"`) {
		t.Errorf("a page does not read along the primary key:\n%s", plan)
	}
}

// TestPostgresListEmptyTable: a table without statistics has no estimate, and a listing
// that fits in one page knows its length.
func TestPostgresListEmptyTable(t *testing.T) {
	t.Parallel()
	f := pgSetup(t, servers.SharedPostgres(t))
	for _, records := range []int{0, 3} {
		if records > 0 {
			f.pgRecords(t, records)
		}
		for name, st := range pgInspectors(t, f) {
			page, err := st.List(t.Context(), store.Query{Limit: 10})
			pgWant(t, "list", err, nil)
			if len(page.Records) != records || page.Next != "" || page.Scanned != records || page.Total != int64(records) {
				t.Errorf("%s: %d records are listed as %+v", name, records, page)
			}
		}
	}
	page, err := f.Leased(t).List(t.Context(), store.Query{Limit: 1})
	if err != nil || page.Total != 0 || page.Scanned != 1 || page.Next == "" {
		t.Errorf("a first page of a table without statistics is %+v, %v", page, err)
	}
}

// TestPostgresListGoesOnBehindAStep: a table that takes several statements is listed
// whole, each record once, and no page is larger than was asked for.
func TestPostgresListGoesOnBehindAStep(t *testing.T) {
	t.Parallel()
	const records = 2000 // two statements look at so many
	f := pgSetup(t, servers.SharedPostgres(t))
	f.pgRecords(t, records)
	for _, limit := range []int{700, 1000, 1200, 10_000} {
		found, _, scanned := pgPages(t, f.Leased(t), store.Query{Limit: limit})
		ids := map[store.ID]bool{}
		for _, r := range found {
			ids[r.ID] = true
		}
		if len(found) != records || len(ids) != records || scanned != records {
			t.Errorf("pages of %d list %d records, %d of them once, and look at %d; want %d", limit, len(found), len(ids), scanned, records)
		}
	}
}

// TestPostgresListSelects: states, label and age select, in pages of any size, and a
// record completed by an operator is marked.
func TestPostgresListSelects(t *testing.T) {
	t.Parallel()
	f := pgSetup(t, servers.SharedPostgres(t))
	st := f.Leased(t)
	claim := func(label string, lease time.Duration) (store.ClaimRequest, store.ClaimResult) {
		r := pgClaim()
		r.Label, r.Lease = label, lease
		return r, pgMustClaim(t, st, r, store.Claimed)
	}
	ids := map[store.ID]string{}
	var lapsed store.ClaimResult
	var resolved store.ClaimRequest
	for i := range 3 {
		label := fmt.Sprintf("label %d", i%2)
		running, _ := claim(label, time.Minute)
		stuck, _ := claim(label, time.Millisecond)
		completed, _ := claim(label, time.Minute)
		pgWant(t, "complete", pgComplete(t, st, completed, "answer"), nil)
		unreadable, _ := claim(label, time.Minute)
		f.exec(t, f.pgDamage("version = 99"), unreadable.ID[:])
		ids[running.ID], ids[stuck.ID], ids[completed.ID], ids[unreadable.ID] = "running", "lapsed", "completed", "unreadable"
		resolved, lapsed = claim(label, time.Millisecond)
		pgPass(5 * time.Millisecond)
		before := pgValue[time.Time](t, f.Pool, "SELECT clock_timestamp()")
		resolution := store.Resolution{Fence: lapsed.Fence, Payload: []byte("by hand"), Retention: time.Hour}
		pgWant(t, "resolve", st.Resolve(t.Context(), resolved.ID, resolution), nil)
		ids[resolved.ID] = "completed"
		record, err := st.Inspect(t.Context(), resolved.ID)
		pgWant(t, "inspect", err, nil)
		if !record.Resolved || record.CompletedAt.Before(before) || record.ClaimedAt.After(before) || record.Size != len("by hand") || record.Label != label {
			t.Errorf("a resolved record is %+v", record)
		}
	}
	gone, _ := claim("label 0", time.Millisecond)
	f.exec(t, f.pgDamage("valid_until = "+pgNow), gone.ID[:])
	old, _ := claim("old", time.Minute)
	f.exec(t, f.pgDamage("claimed_at = claimed_at - 2 * "+pgHour), old.ID[:])
	ids[old.ID] = "running"

	for name, st := range pgInspectors(t, f) {
		for _, limit := range []int{1, 2, 5, 10_000} {
			all, _, _ := pgPages(t, st, store.Query{Limit: limit})
			if len(all) != len(ids) {
				t.Errorf("%s: pages of %d list %d records, want %d", name, limit, len(all), len(ids))
			}
			for _, r := range all {
				if r.State.String() != ids[r.ID] || r.Payload != nil {
					t.Errorf("%s: listed %+v, want %s", name, r, ids[r.ID])
				}
			}
			for what, q := range map[string]struct {
				store.Query
				want int
			}{
				"running":      {store.Query{States: store.States(store.StateRunning)}, 4},
				"lapsed":       {store.Query{States: store.States(store.StateLapsed)}, 3},
				"completed":    {store.Query{States: store.States(store.StateCompleted)}, 6},
				"unreadable":   {store.Query{States: store.States(store.StateUnreadable)}, 3},
				"two states":   {store.Query{States: store.States(store.StateLapsed, store.StateUnreadable)}, 6},
				"label":        {store.Query{Label: "label 1"}, 4},
				"label, state": {store.Query{Label: "label 0", States: store.States(store.StateLapsed)}, 2},
				"age":          {store.Query{OlderThan: time.Hour}, 1 + 3}, // and those of unknown age
			} {
				q.Limit = limit
				if got, _, _ := pgPages(t, st, q.Query); len(got) != q.want {
					t.Errorf("%s: pages of %d by %s list %d records, want %d", name, limit, what, len(got), q.want)
				}
			}
		}
	}
}

// TestPostgresCursorOfAnotherTable: a cursor is valid for its table only, with either
// store, and the error for another names the remedy.
func TestPostgresCursorOfAnotherTable(t *testing.T) {
	t.Parallel()
	f := pgSetup(t, servers.SharedPostgres(t))
	other := pgSetup(t, servers.SharedPostgres(t))
	f.pgRecords(t, 3)
	other.pgRecords(t, 3)
	page, err := f.Leased(t).List(t.Context(), store.Query{Limit: 1})
	pgWant(t, "list", err, nil)
	q := store.Query{Limit: 10, After: page.Next}
	if rest, err := f.Leased(t).List(t.Context(), q); err != nil || len(rest.Records) != 2 {
		t.Errorf("the other store over the table goes on with %+v, %v", rest, err)
	}
	_, err = other.Leased(t).List(t.Context(), q)
	pgWant(t, "list with a cursor of another table", err, store.ErrInvalid)
	if !strings.Contains(err.Error(), "start the listing again") || !strings.Contains(err.Error(), other.Config.Schema) {
		t.Errorf("the error says %q", err)
	}
	for _, cursor := range []string{"x", "postgres-", "memory-1-2-3", page.Next[:len(page.Next)-1], page.Next[:strings.LastIndex(page.Next, "-")+1]} {
		_, err := f.Leased(t).List(t.Context(), store.Query{Limit: 10, After: cursor})
		pgWant(t, "list after "+cursor, err, store.ErrInvalid)
	}
}

// TestPostgresUnreadableRecords: a record of an unknown version is listed, does not
// disturb other records, and can be forgotten but not completed; no other record is
// forgotten that way.
func TestPostgresUnreadableRecords(t *testing.T) {
	t.Parallel()
	f := pgSetup(t, servers.SharedPostgres(t))
	for name, st := range pgInspectors(t, f) {
		r, readable := pgClaim(), pgClaim()
		for _, r := range []store.ClaimRequest{r, readable} {
			pgMustClaim(t, st, r, store.Claimed)
			pgWant(t, "complete", pgComplete(t, st, r, "answer"), nil)
		}
		f.exec(t, f.pgDamage("version = 99"), r.ID[:])
		record, err := st.Inspect(t.Context(), r.ID)
		if err != nil || record.State != store.StateUnreadable || record.ID != r.ID || record.Size != len("answer") || record.Payload != nil || record.Validity <= 0 {
			t.Errorf("%s: inspected %+v, %v", name, record, err)
		}
		forget := store.Resolution{State: record.State, Fence: record.Fence, Forget: true}
		answer := store.Resolution{Fence: record.Fence, Payload: []byte("x"), Retention: time.Hour}
		pgWant(t, "answer", st.Resolve(t.Context(), r.ID, answer), store.ErrRecordChanged)
		f.exec(t, f.pgDamage("version = 98"), r.ID[:])
		pgWant(t, "forget what was written since", st.Resolve(t.Context(), r.ID, forget), store.ErrRecordChanged)
		record, err = st.Inspect(t.Context(), r.ID)
		pgWant(t, "inspect again", err, nil)
		forget.Fence = record.Fence
		pgWant(t, "forget a readable one", st.Resolve(t.Context(), readable.ID, forget), store.ErrRecordChanged)
		pgMustClaim(t, st, pgRival(readable), store.Completed)
		pgWant(t, "forget", st.Resolve(t.Context(), r.ID, forget), nil)
		pgWant(t, "forget what is gone", st.Resolve(t.Context(), r.ID, forget), store.ErrRecordChanged)
		if _, err := st.Inspect(t.Context(), r.ID); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("%s: inspect after it was forgotten: %v", name, err)
		}
		again := pgRival(r)
		pgMustClaim(t, st, again, store.Claimed)
		pgWant(t, "release", st.Release(t.Context(), again.ID, again.Owner), nil)
	}
}
