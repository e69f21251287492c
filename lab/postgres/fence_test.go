package postgres

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/servers"
	reprisepg "github.com/reprise-go/reprise/store/postgres"
)

// awaitLock waits until a statement of the fixture waits for a lock.
func (f *pgFixture) awaitLock(t *testing.T) {
	t.Helper()
	labtest.Eventually(t, "the claim waits", func() bool {
		return pgValue[int](t, f.Pool, "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%' || $1 || '%'", f.Config.Schema) == 1
	})
}

// TestPostgresLeaseCountsFromItsClock: a claim that waits for an insert which is then
// rolled back has the lease, the validity and the purge's index column of the instant at
// which it began, and says how much of its lease is left: what the server honours, and
// not more.
func TestPostgresLeaseCountsFromItsClock(t *testing.T) {
	t.Parallel()
	f := pgSetup(t, servers.SharedPostgres(t))
	unprepared := f.in(t, pgx.QueryExecModeExec)
	for name, st := range map[string]*reprisepg.Store{"prepared": f.Leased(t), "unprepared": unprepared.Leased(t)} {
		r := labtest.NewClaim()
		insert, err := f.Pool.Begin(t.Context())
		labtest.Must(t, err)
		t.Cleanup(func() { _ = insert.Rollback(context.WithoutCancel(t.Context())) })
		pgExec(t, insert, f.pgInsert("(SELECT $1::bytea AS id) AS s", nil), r.ID[:])
		answered := make(chan store.ClaimResult, 1)
		from := pgValue[int64](t, f.Pool, "SELECT "+pgLate)
		go func() { answered <- pgMustNotFail(t, st, r) }()
		f.awaitLock(t)
		const wait = 50 * time.Millisecond
		to := pgValue[int64](t, f.Pool, "SELECT "+pgLate)
		pgPass(wait)
		labtest.Must(t, insert.Rollback(t.Context()))
		got := <-answered
		if got.Outcome != store.Claimed || got.Remaining > r.Lease-wait || got.Remaining < r.Lease/2 {
			t.Errorf("%s: claim answered %v with %v of a lease of %v", name, got.Outcome, got.Remaining, r.Lease)
		}
		us := func(d time.Duration) int64 { return d.Microseconds() }
		var claimed, lease, valid, due int64
		if err := f.Pool.QueryRow(t.Context(), "SELECT claimed_at, lease_until, valid_until, due_at FROM "+f.records()+" WHERE id = $1", r.ID[:]).
			Scan(&claimed, &lease, &valid, &due); err != nil {
			t.Fatal(err)
		}
		if claimed != int64(got.Fence) || claimed < from || claimed > to || lease != claimed+us(r.Lease) ||
			valid != claimed+us(r.Retention) || due != claimed+us(r.Retention+time.Hour) {
			t.Errorf("%s: a claim between %d and %d with fence %d has %d, %d, %d and %d", name, from, to, got.Fence, claimed, lease, valid, due)
		}
	}
}

// TestPostgresLookOfAStandby: where replays are common a claim begins with a SELECT,
// which a standby would serve with stale data. It returns no record there, and the claim
// is refused as every claim on a standby is.
func TestPostgresLookOfAStandby(t *testing.T) {
	t.Parallel()
	server := servers.StartPostgres(t)
	statements := &pgStatements{}
	f := pgSetup(t, server, statements.option)
	st := f.Leased(t)
	r := labtest.Completed(t, st, pgBody)
	for range 100 {
		labtest.WantClaim(t, st, labtest.Rival(r), store.Completed)
	}
	look := statements.last(t)
	if strings.Contains(look, "INSERT") {
		t.Fatalf("after a hundred replays a claim begins with %s", look)
	}
	before := statements.count()
	labtest.WantClaim(t, st, labtest.Rival(r), store.Completed)
	if got := statements.count() - before; got != 1 {
		t.Errorf("a replay takes %d statements", got)
	}
	count := "SELECT count(*) FROM (" + look + ") AS l"
	if n := pgValue[int](t, f.Pool, count, r.ID[:]); n != 1 {
		t.Errorf("the look finds %d records", n)
	}
	if !pgValue[bool](t, f.Pool, "SELECT l.at = "+pgNow+" FROM ("+look+") AS l (at)", r.ID[:]) {
		t.Error("the look comes with a later clock than the start of its transaction")
	}
	standby := server.StartStandby(t)
	reader := labtest.NewPool(t, standby.URL())
	labtest.Eventually(t, "the standby has the record", func() bool {
		var n int
		err := reader.QueryRow(t.Context(), "SELECT count(*) FROM "+f.records()+" WHERE state = 2").Scan(&n)
		return err == nil && n == 1
	})
	if n := pgValue[int](t, reader, count, r.ID[:]); n != 0 {
		t.Errorf("the look finds %d records on a standby", n)
	}
	unprepared := pgOn(reader, f.Config).in(t, pgx.QueryExecModeExec)
	for what, st := range map[string]store.Store{
		"prepared": pgOn(reader, f.Config).Leased(t), "unprepared": unprepared.Leased(t),
	} {
		_, err := st.Claim(t.Context(), labtest.Rival(r))
		labtest.Want(t, "replay on a standby, "+what, err, store.ErrUnavailable)
	}
	batch := "SELECT count(*) FROM " + f.name("reprise_records_claims_v1") + "(array[$1::bytea], array[$1::bytea], array[$1::bytea], " +
		"array[3600000000], array[3600000000], array[0::bigint], array[''], array[0::smallint], array[''], true)"
	var n int
	if err := reader.QueryRow(t.Context(), batch, r.ID[:]).Scan(&n); err == nil || !strings.Contains(err.Error(), "may be behind") {
		t.Errorf("a batch on a standby answers %d records, %v", n, err)
	}
}
