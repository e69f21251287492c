package postgres

import (
	"context"
	"testing"
	"time"

	"github.com/reprise-go/reprise/conformance/storetest"
	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"

	"github.com/jackc/pgx/v5"
	"github.com/reprise-go/reprise/servers"
	reprisepg "github.com/reprise-go/reprise/store/postgres"
)

// TestPostgresEveryExecMode lives a record's life in each way that pgx has to send a
// statement. In a soak it is the whole suite.
func TestPostgresEveryExecMode(t *testing.T) {
	t.Parallel()
	server := servers.SharedPostgres(t)
	for _, mode := range pgModes {
		setup := func(tb testing.TB) *pgFixture {
			return pgSetup(tb, server, labtest.MaxConns(8), labtest.ExecMode(mode))
		}
		t.Run("mode="+mode.String(), func(t *testing.T) {
			t.Parallel()
			f := setup(t)
			pgLeasedLife(t, f.Leased(t))
			f.exec(t, "CREATE TABLE "+f.name("effects")+" (n integer)")
			pgTransactionalLife(t, f, f.Transactional(t))
		})
		if labtest.Soak(t) == 0 {
			continue
		}
		t.Run("suite/leased/mode="+mode.String(), func(t *testing.T) {
			t.Parallel()
			storetest.Run(t, func(tb testing.TB) storetest.Fixture { return pgSuite(tb, setup(tb)) })
		})
	}
}

// pgLeasedLife takes a record of the leased store through every statement.
func pgLeasedLife(t *testing.T, st *reprisepg.Store) {
	t.Helper()
	ctx, cancel := pgCall(t)
	defer cancel()
	first := labtest.NewClaim()
	first.Lease = 50 * time.Millisecond
	granted := labtest.WantClaim(t, st, first, store.Claimed)
	second := labtest.Rival(first)
	second.Lease = time.Minute
	for pgMustNotFail(t, st, second).Outcome == store.InProgress {
		pgPass(5 * time.Millisecond)
	}
	got := labtest.WantClaim(t, st, second, store.Claimed)
	if got.Attempt != 2 || got.Fence <= granted.Fence {
		t.Errorf("takeover: attempt %d with fence %d after fence %d, want attempt 2 and a higher fence", got.Attempt, got.Fence, granted.Fence)
	}
	other := labtest.Rival(first)
	other.Fingerprint[0]++
	labtest.WantClaim(t, st, other, store.Mismatch)
	statuses, err := st.Renew(ctx, []store.RenewRequest{
		{ID: first.ID, Owner: first.Owner, Lease: time.Minute}, {ID: second.ID, Owner: second.Owner, Lease: time.Minute},
	})
	labtest.Must(t, err)
	if statuses[0] != store.RenewLost || statuses[1] != store.Renewed {
		t.Errorf("renew answered %v, want lost and renewed", statuses)
	}
	labtest.Want(t, "complete of the first", labtest.Complete(t, st, first, "stale"), store.ErrLeaseLost)
	const payload = "\x00\\x27'\xff answer"
	labtest.Must(t, labtest.Complete(t, st, second, payload))
	labtest.Must(t, labtest.Complete(t, st, second, "another"))
	if got := labtest.WantClaim(t, st, labtest.Rival(first), store.Completed); string(got.Payload) != payload {
		t.Errorf("replayed %q, want %q", got.Payload, payload)
	}
	pgWantValidity(t, st, first)
	record, err := st.Inspect(ctx, first.ID)
	if err != nil || record.State != store.StateCompleted || string(record.Payload) != payload {
		t.Errorf("inspect: %+v, %v", record, err)
	}
	released := labtest.Claimed(t, st)
	labtest.Must(t, st.Release(ctx, released.ID, released.Owner))
	if list, err := st.List(ctx, store.Query{Limit: 10}); err != nil || len(list.Records) != 1 {
		t.Errorf("list: %+v, %v; want the one record", list, err)
	}
	if deleted, err := st.Purge(ctx, 10); err != nil || deleted != 0 {
		t.Errorf("purge deleted %d, %v; want none", deleted, err)
	}
}

// pgTransactionalLife takes two attempts of the transactional store through every
// statement, with effects.
func pgTransactionalLife(t *testing.T, f *pgFixture, st *labtest.TxStore) {
	t.Helper()
	effect := "INSERT INTO " + f.name("effects") + " VALUES ($1)"
	kept, undone, released := labtest.NewClaim(), labtest.NewClaim(), labtest.NewClaim()
	for i, r := range []store.ClaimRequest{kept, undone, released} {
		labtest.WantClaim(t, st, r, store.Claimed)
		labtest.WantClaim(t, st, labtest.Rival(r), store.InProgress)
		if _, err := pgTx(t, st, r).Exec(t.Context(), effect, i); err != nil {
			t.Fatal(err)
		}
	}
	const payload = "\x00\\x27'\xff answer"
	labtest.Must(t, labtest.Complete(t, st, kept, payload))
	ctx, cancel := pgCall(t)
	defer cancel()
	labtest.Must(t, st.Discard(ctx, labtest.Completion(undone, "refused")))
	labtest.Must(t, st.Release(ctx, released.ID, released.Owner))

	if got := labtest.WantClaim(t, st, labtest.Rival(kept), store.Completed); string(got.Payload) != payload {
		t.Errorf("replayed %q, want %q", got.Payload, payload)
	}
	if got := labtest.WantClaim(t, st, labtest.Rival(undone), store.Completed); string(got.Payload) != "refused" {
		t.Errorf("replayed %q, want %q", got.Payload, "refused")
	}
	pgWantValidity(t, st, kept)
	again := labtest.Rival(released)
	labtest.WantClaim(t, st, again, store.Claimed)
	labtest.Must(t, st.Release(ctx, again.ID, again.Owner))
	if got := pgValue[string](t, f.Pool, "SELECT coalesce(string_agg(n::text, ','), '') FROM "+f.name("effects"), pgx.QueryExecModeExec); got != "0" {
		t.Errorf("effects %q are left, want those of attempt 0 alone", got)
	}
}

// pgWantValidity demands that a record that was completed just now is valid for its
// retention.
func pgWantValidity(tb testing.TB, st store.Inspector, completed store.ClaimRequest) {
	tb.Helper()
	ctx, cancel := pgCall(tb)
	defer cancel()
	record, err := st.Inspect(ctx, completed.ID)
	labtest.Must(tb, err)
	if got := record.Validity; got <= completed.Retention-10*time.Second || got > completed.Retention {
		tb.Errorf("the validity is %v of a retention of %v", got, completed.Retention)
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
