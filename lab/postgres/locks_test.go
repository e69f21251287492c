package postgres

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/servers"
)

// pgHold changes the row of a record in a transaction that stays open, and returns it.
func (f *pgFixture) pgHold(t *testing.T, id store.ID, change string) pgx.Tx {
	t.Helper()
	tx, err := f.Pool.Begin(t.Context())
	labtest.Must(t, err)
	t.Cleanup(func() { _ = tx.Rollback(context.Background()) }) //nolint:usetesting // the test's own context has ended by then
	pgExec(t, tx, f.pgDamage(change), id[:])
	return tx
}

// TestPostgresUpkeepSkipsLockedRecords: a purge and a renewal skip a row that another
// statement holds, exclusively or not, and change the others. Two writers that shared a
// row would wait for each other.
func TestPostgresUpkeepSkipsLockedRecords(t *testing.T) {
	t.Parallel()
	f := pgSetup(t, servers.SharedPostgres(t))
	st := f.Leased(t)
	ctx, cancel := pgCall(t)
	defer cancel()
	for _, lock := range []string{"FOR SHARE", "FOR UPDATE"} {
		var (
			batch []store.RenewRequest
			over  [2]store.ClaimRequest
		)
		for range 3 {
			r := labtest.Claimed(t, st)
			batch = append(batch, store.RenewRequest{ID: r.ID, Owner: r.Owner, Lease: r.Lease})
		}
		for i := range over {
			over[i] = labtest.NewClaim()
			labtest.WantClaim(t, st, over[i], store.Claimed)
			f.exec(t, f.pgDamage(pgEnded), over[i].ID[:])
		}
		holder := f.pgHold(t, batch[1].ID, "fence = fence")
		pgExec(t, holder, "SELECT FROM "+f.records()+" WHERE id = $1 "+lock, over[0].ID[:])
		if n, err := st.Purge(ctx, 10); n != 1 || err != nil {
			t.Errorf("%s: %d records were purged, %v; want the free one", lock, n, err)
		}
		pgExec(t, holder, f.pgDamage("lease_until = "+pgInAnHour+", valid_until = "+pgInAnHour), over[0].ID[:])
		if got, err := st.Renew(ctx, batch); err != nil || !slices.Equal(got, []store.RenewStatus{store.Renewed, store.RenewBusy, store.Renewed}) {
			t.Errorf("%s: renew answered %v, %v, want the locked one busy and the others renewed", lock, got, err)
		}
		labtest.Must(t, holder.Commit(t.Context()))
		if n, err := st.Purge(ctx, 10); n != 0 || err != nil {
			t.Errorf("%s: %d records were purged that were claimed again, %v", lock, n, err)
		}
	}
}

// TestPostgresBatchOfClaimsGivesUpOnACreation: a batch waits only shortly for a
// transaction that inserts one of its records, so that its calls are sent alone and only
// one of them waits.
func TestPostgresBatchOfClaimsGivesUpOnACreation(t *testing.T) {
	t.Parallel()
	f := pgSetup(t, servers.SharedPostgres(t))
	r := labtest.NewClaim()
	insert, err := f.Pool.Begin(t.Context())
	labtest.Must(t, err)
	t.Cleanup(func() { _ = insert.Rollback(context.Background()) }) //nolint:usetesting // the test's own context has ended by then
	ctx, cancel := pgCall(t)
	defer cancel()
	pgExec(t, insert, f.pgInsert("(SELECT $1::bytea AS id) AS s", nil), r.ID[:])
	_, err = f.Pool.Exec(ctx, "SELECT * FROM "+f.name("reprise_records_claims_v1")+"(array[$1::bytea], array[$2::bytea], array[$3::bytea], array[60000000], "+
		"array[3600000000], array[0], array[''], array[0]::smallint[], array[''], false)", r.ID[:], r.Owner[:], r.Fingerprint[:])
	var serverErr *pgconn.PgError
	if !errors.As(err, &serverErr) || serverErr.Code != "55P03" {
		t.Errorf("a batch that meets an insert ends with %v, want a lock timeout", err)
	}
}
