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
	reclaim := f.pgHold(t, r.ID, "lease_until = now() + interval '1 hour', valid_until = now() + interval '1 hour'")
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

// TestPostgresSharesNoRow: a writer locks its row exclusively. A purge, a renewal and a
// takeover skip a row with a shared lock: two writers that shared it would wait for each
// other.
func TestPostgresSharesNoRow(t *testing.T) {
	t.Parallel()
	f := pgSetup(t, servers.SharedPostgres(t))
	st := f.Leased(t)
	running, lapsed, over := pgClaim(), pgClaim(), pgClaim()
	for _, r := range []store.ClaimRequest{running, lapsed, over} {
		pgMustClaim(t, st, r, store.Claimed)
	}
	f.exec(t, f.pgDamage("lease_until = now()"), lapsed.ID[:])
	f.exec(t, f.pgDamage("lease_until = now(), valid_until = now(), expires_at = now()"), over.ID[:])
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
	pgMustClaim(t, st, pgRival(lapsed), store.InProgress)
}

// TestPostgresBatchOfClaimsSkipsLockedIDs: a batch skips an ID whose lock is taken, and
// gives up where a program without the lock is inserting its record, so that its calls
// are sent alone and only one of them waits.
func TestPostgresBatchOfClaimsSkipsLockedIDs(t *testing.T) {
	t.Parallel()
	f := pgSetup(t, servers.SharedPostgres(t))
	r := pgClaim()
	insert, err := f.Pool.Begin(t.Context())
	pgWant(t, "begin", err, nil)
	t.Cleanup(func() { _ = insert.Rollback(context.Background()) }) //nolint:usetesting // the test's own context has ended by then
	write := "INSERT INTO " + f.records() + ` (id, version, state, attempt, fence, owner, fingerprint, payload, lease_until, valid_until, expires_at, created_at)
		VALUES ($1::bytea, 1, 2, 1, 1, substr($1::bytea, 1, 16), $1::bytea, '', now(), now(), now(), now())`
	ctx, cancel := pgCall(t)
	defer cancel()
	batch := "SELECT * FROM " + f.name("reprise_records_claims_v1") + "(array[$1::bytea], array[$2::bytea], array[$3::bytea], array[1], " +
		"array[interval '1 hour'], array[3600000000], array[0], array[''], array[false], array[''], false)"
	if _, err := insert.Exec(ctx, "SELECT pg_advisory_xact_lock_shared(1 # $1::regclass::oid::bigint)", f.records()); err != nil {
		t.Fatal(err)
	}
	other := pgClaim()
	if tag, err := f.Pool.Exec(ctx, batch, other.ID[:], other.Owner[:], other.Fingerprint[:]); err != nil || tag.RowsAffected() != 0 {
		t.Errorf("a batch answers %v, %v, of an ID that somebody creates; want nothing", tag, err)
	}
	pgWant(t, "rollback", insert.Rollback(ctx), nil)
	if insert, err = f.Pool.Begin(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := insert.Exec(ctx, write, r.ID[:]); err != nil {
		t.Fatal(err)
	}
	_, err = f.Pool.Exec(ctx, batch, r.ID[:], r.Owner[:], r.Fingerprint[:])
	var serverErr *pgconn.PgError
	if !errors.As(err, &serverErr) || serverErr.Code != "55P03" {
		t.Errorf("a batch that meets an insert ends with %v, want a lock timeout", err)
	}
}
