package postgres

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/lab/servers"
)

// pgHold changes the row of a record in a transaction that stays open, and returns it.
func (f *pgFixture) pgHold(t *testing.T, id reprise.ID, change string) pgx.Tx {
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

// TestPostgresPurgeSkipsWhatIsBeingReclaimed: a record that somebody is just writing is
// left alone, also when it was past its retention before.
func TestPostgresPurgeSkipsWhatIsBeingReclaimed(t *testing.T) {
	t.Parallel()
	f := pgSetup(t, servers.SharedPostgres(t))
	store := f.Leased(t)
	r := pgClaim()
	r.Lease, r.Retention = time.Millisecond, time.Millisecond
	pgMustClaim(t, store, r, reprise.Claimed)
	pgPass(10 * time.Millisecond)
	reclaim := f.pgHold(t, r.ID, "lease_until = now() + interval '1 hour', valid_until = now() + interval '1 hour'")
	purged := make(chan int, 1)
	go func() {
		deleted, err := store.Purge(t.Context(), 10)
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
	case <-time.After(5 * time.Second):
		t.Error("the purge waits for a claim")
	}
	pgWant(t, "commit", reclaim.Commit(t.Context()), nil)
	if n := pgValue[int](t, f.Pool, "SELECT count(*) FROM "+f.records()); n != 1 {
		t.Errorf("%d records, want the one that was claimed again", n)
	}
}

// TestPostgresRenewSkipsWhatIsBusy: one record that is locked does not keep the others of
// the batch from being renewed.
func TestPostgresRenewSkipsWhatIsBusy(t *testing.T) {
	t.Parallel()
	f := pgSetup(t, servers.SharedPostgres(t))
	store := f.Leased(t)
	var batch []reprise.RenewRequest
	for range 3 {
		r := pgClaim()
		pgMustClaim(t, store, r, reprise.Claimed)
		batch = append(batch, reprise.RenewRequest{ID: r.ID, Owner: r.Owner, Lease: r.Lease})
	}
	completing := f.pgHold(t, batch[1].ID, "state = 2, payload = ''")
	renew := func() []reprise.RenewStatus {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		statuses, err := store.Renew(ctx, batch)
		pgWant(t, "renew", err, nil)
		return statuses
	}
	if got := renew(); got[0] != reprise.Renewed || got[1] != reprise.RenewBusy || got[2] != reprise.Renewed {
		t.Errorf("renew answered %v, want the locked one busy and the others renewed", got)
	}
	pgWant(t, "commit", completing.Commit(t.Context()), nil)
	if got := renew(); got[1] != reprise.RenewCompleted {
		t.Errorf("renew answered %v, want the second completed", got)
	}
}
