package postgres

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/servers"
)

// pgHold changes the row of a record in a transaction that stays open, and returns it.
func (f *pgFixture) pgHold(t *testing.T, id store.ID, change string) pgx.Tx {
	t.Helper()
	tx, err := f.Pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback(context.Background()) }) //nolint:usetesting // the test's own context has ended by then
	if _, err := tx.Exec(t.Context(), f.pgDamage(change), id[:]); err != nil {
		t.Fatal(err)
	}
	return tx
}

// TestPostgresPurgeSkipsReclaimedRecords: a record that another statement is writing
// is skipped, even if its retention had ended before.
func TestPostgresPurgeSkipsReclaimedRecords(t *testing.T) {
	t.Parallel()
	f := pgSetup(t, servers.SharedPostgres(t))
	st := f.Leased(t)
	r := pgClaim()
	r.Lease, r.Retention = time.Millisecond, time.Millisecond
	pgMustClaim(t, st, r, store.Claimed)
	pgPass(10 * time.Millisecond)
	reclaim := f.pgHold(t, r.ID, "lease_until = "+pgInAnHour+", valid_until = "+pgInAnHour)
	purged := make(chan int, 1)
	go func() {
		deleted, err := st.Purge(t.Context(), 10)
		if err != nil {
			t.Errorf("purge: %v", err)
		}
		purged <- deleted
	}()
	select {
	case deleted := <-purged:
		if deleted != 0 {
			t.Errorf("%d records were purged", deleted)
		}
	case <-time.After(time.Minute):
		t.Error("the purge waits for a claim")
	}
	pgWant(t, "commit", reclaim.Commit(t.Context()), nil)
	if n := pgValue[int](t, f.Pool, "SELECT count(*) FROM "+f.records()); n != 1 {
		t.Errorf("%d records, want the one that was claimed again", n)
	}
}

// TestPostgresRenewSkipsLockedRecords: one record that is locked does not keep the others
// of the batch from being renewed.
func TestPostgresRenewSkipsLockedRecords(t *testing.T) {
	t.Parallel()
	f := pgSetup(t, servers.SharedPostgres(t))
	st := f.Leased(t)
	var batch []store.RenewRequest
	for range 3 {
		r := pgClaim()
		pgMustClaim(t, st, r, store.Claimed)
		batch = append(batch, store.RenewRequest{ID: r.ID, Owner: r.Owner, Lease: r.Lease})
	}
	completing := f.pgHold(t, batch[1].ID, "state = 2, payload = ''")
	renew := func() []store.RenewStatus {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		statuses, err := st.Renew(ctx, batch)
		pgWant(t, "renew", err, nil)
		return statuses
	}
	if got := renew(); got[0] != store.Renewed || got[1] != store.RenewBusy || got[2] != store.Renewed {
		t.Errorf("renew answered %v, want the locked one busy and the others renewed", got)
	}
	pgWant(t, "commit", completing.Commit(t.Context()), nil)
	if got := renew(); got[1] != store.RenewCompleted {
		t.Errorf("renew answered %v, want the second completed", got)
	}
}

// TestPostgresSharesNoRow: a writer locks its row exclusively. A purge and a renewal skip
// a row with a shared lock: two writers that shared it would wait for each other.
func TestPostgresSharesNoRow(t *testing.T) {
	t.Parallel()
	f := pgSetup(t, servers.SharedPostgres(t))
	st := f.Leased(t)
	running, over := pgClaim(), pgClaim()
	pgMustClaim(t, st, running, store.Claimed)
	pgMustClaim(t, st, over, store.Claimed)
	f.exec(t, f.pgDamage(pgEnded), over.ID[:])
	sharer, err := f.Pool.Begin(t.Context())
	pgWant(t, "begin", err, nil)
	t.Cleanup(func() { _ = sharer.Rollback(context.Background()) }) //nolint:usetesting // the test's own context has ended by then
	if _, err := sharer.Exec(t.Context(), "SELECT FROM "+f.records()+" FOR SHARE"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := pgCall(t)
	defer cancel()
	if n, err := st.Purge(ctx, 10); n != 0 || err != nil {
		t.Errorf("%d records were purged, %v; want none", n, err)
	}
	statuses, err := st.Renew(ctx, []store.RenewRequest{{ID: running.ID, Owner: running.Owner, Lease: time.Minute}})
	if err != nil || statuses[0] != store.RenewBusy {
		t.Errorf("a renewal answers %v, %v; want busy", statuses, err)
	}
}

// TestPostgresBatchOfClaimsGivesUpOnACreation: a batch waits only shortly for a
// transaction that inserts one of its records, so that its calls are sent alone and only
// one of them waits.
func TestPostgresBatchOfClaimsGivesUpOnACreation(t *testing.T) {
	t.Parallel()
	f := pgSetup(t, servers.SharedPostgres(t))
	r := pgClaim()
	insert, err := f.Pool.Begin(t.Context())
	pgWant(t, "begin", err, nil)
	t.Cleanup(func() { _ = insert.Rollback(context.Background()) }) //nolint:usetesting // the test's own context has ended by then
	ctx, cancel := pgCall(t)
	defer cancel()
	_, err = insert.Exec(ctx, f.pgInsert("(SELECT $1::bytea AS id) AS s", nil), r.ID[:])
	pgWant(t, "insert", err, nil)
	_, err = f.Pool.Exec(ctx, "SELECT * FROM "+f.name("reprise_records_claims_v1")+"(array[$1::bytea], array[$2::bytea], array[$3::bytea], array[60000000], "+
		"array[3600000000], array[0], array[''], array[0]::smallint[], array[''], false)", r.ID[:], r.Owner[:], r.Fingerprint[:])
	var serverErr *pgconn.PgError
	if !errors.As(err, &serverErr) || serverErr.Code != "55P03" {
		t.Errorf("a batch that meets an insert ends with %v, want a lock timeout", err)
	}
}
