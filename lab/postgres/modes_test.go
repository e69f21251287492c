package postgres

import (
	"context"
	"testing"
	"time"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"

	"github.com/jackc/pgx/v5"
	"github.com/reprise-go/reprise/servers"
	reprisepg "github.com/reprise-go/reprise/store/postgres"
)

// TestPostgresEveryExecMode lives a record's life in each way that pgx has to send a
// statement.
func TestPostgresEveryExecMode(t *testing.T) {
	t.Parallel()
	for _, mode := range []pgx.QueryExecMode{
		pgx.QueryExecModeCacheStatement, pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeDescribeExec,
		pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol,
	} {
		t.Run("mode="+mode.String(), func(t *testing.T) {
			t.Parallel()
			f := pgSetup(t, servers.SharedPostgres(t), labtest.ExecMode(mode))
			pgLeasedLife(t, f.Leased(t))
			f.exec(t, "CREATE TABLE "+f.name("effects")+" (n integer)")
			pgTransactionalLife(t, f, f.Transactional(t))
		})
	}
}

// pgLeasedLife takes a record of the leased store through every statement.
func pgLeasedLife(t *testing.T, st *reprisepg.Store) {
	t.Helper()
	ctx, cancel := labtest.Call(t)
	defer cancel()
	first := labtest.NewClaim()
	first.Lease = 50 * time.Millisecond
	labtest.WantClaim(t, st, first, store.Claimed)
	second := labtest.Rival(first)
	second.Lease = time.Minute
	var got store.ClaimResult
	for got.Outcome != store.Claimed {
		pgPass(5 * time.Millisecond)
		got = pgMustNotFail(t, st, second)
	}
	statuses, err := st.Renew(ctx, []store.RenewRequest{
		{ID: first.ID, Owner: first.Owner, Lease: time.Minute}, {ID: second.ID, Owner: second.Owner, Lease: time.Minute},
	})
	if err != nil || got.Attempt != 2 || statuses[0] != store.RenewLost || statuses[1] != store.Renewed {
		t.Errorf("taken over as %+v, renewed %v, %v; want attempt 2, lost and renewed", got, statuses, err)
	}
	labtest.Want(t, "complete of the first", labtest.Complete(t, st, first, "stale"), store.ErrLeaseLost)
	labtest.Must(t, labtest.Complete(t, st, second, pgBinary))
	pgWantReplay(t, st, second, pgBinary)
	released := labtest.Claimed(t, st)
	labtest.Must(t, st.Release(ctx, released.ID, released.Owner))
	if list, err := st.List(ctx, store.Query{Limit: 10}); err != nil || len(list.Records) != 1 {
		t.Errorf("list: %+v, %v; want the one record", list, err)
	}
	if deleted, err := st.Purge(ctx, 10); err != nil || deleted != 0 {
		t.Errorf("purge deleted %d, %v; want none", deleted, err)
	}
}

// pgBinary is a payload that is easily mistaken for a text.
const pgBinary = "\x00\\x27'\xff answer"

// pgTransactionalLife takes attempts of the transactional store through every statement,
// with effects.
func pgTransactionalLife(t *testing.T, f *pgFixture, st *labtest.TxStore) {
	t.Helper()
	kept, undone, released := labtest.NewClaim(), labtest.NewClaim(), labtest.NewClaim()
	for i, r := range []store.ClaimRequest{kept, undone, released} {
		labtest.WantClaim(t, st, r, store.Claimed)
		pgExec(t, pgTx(t, st, r), f.insertion(), i)
	}
	labtest.Must(t, labtest.Complete(t, st, kept, pgBinary))
	labtest.Must(t, st.Discard(t.Context(), labtest.Completion(undone, "refused")))
	labtest.Must(t, st.Release(t.Context(), released.ID, released.Owner))
	pgWantReplay(t, st, kept, pgBinary)
	pgWantReplay(t, st, undone, "refused")
	again := labtest.Rival(released)
	labtest.WantClaim(t, st, again, store.Claimed)
	labtest.Must(t, st.Release(t.Context(), again.ID, again.Owner))
	if got := pgValue[string](t, f.Pool, "SELECT coalesce(string_agg(n::text, ','), '') FROM "+f.name("effects"), pgx.QueryExecModeExec); got != "0" {
		t.Errorf("effects %q are left, want those of attempt 0 alone", got)
	}
}

// pgWantReplay demands that a record is replayed.
func pgWantReplay(tb testing.TB, st store.Store, completed store.ClaimRequest, payload string) {
	tb.Helper()
	if got := labtest.WantClaim(tb, st, labtest.Rival(completed), store.Completed); string(got.Payload) != payload {
		tb.Errorf("replayed %q, want %q", got.Payload, payload)
	}
}

// pgMustNotFail claims and returns the result, with any outcome.
func pgMustNotFail(tb testing.TB, store store.Store, r store.ClaimRequest) store.ClaimResult {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), 10*time.Second)
	defer cancel()
	got, err := store.Claim(ctx, r)
	if err != nil {
		tb.Fatalf("claim: %v", err)
	}
	return got
}
