package postgres

import (
	"context"
	"testing"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
)

func pgUnknown(tb testing.TB, st store.Store, r store.ClaimRequest) error {
	tb.Helper()
	ctx, cancel := pgCall(tb)
	defer cancel()
	return st.Unknown(ctx, store.UnknownRequest{ID: r.ID, Owner: r.Owner, Reason: "the bank timed out"})
}

// TestPostgresUnknownRollsBackAndCommitsTheRecordAlone: whatever the handler left of its
// transaction, its rows are gone, the record says that the outcome is unknown, and the
// attempt holds no lock any more.
func TestPostgresUnknownRollsBackAndCommitsTheRecordAlone(t *testing.T) {
	t.Parallel()
	f, pgxStore := pgTxSetup(t)
	g, sqlStore, _ := pgSQLSetup(t)
	for _, over := range []struct {
		name string
		f    *pgFixture
		st   *labtest.TxStore
	}{{"pgx", f, pgxStore}, {"sql", g, sqlStore}} {
		for name, spoil := range map[string]func(context.Context) error{
			"a transaction":              func(context.Context) error { return nil },
			"one whose statement failed": func(ctx context.Context) error { _ = pgExecTx(ctx, "SELECT 1 / 0"); return nil },
			"one that lost its connection": func(ctx context.Context) error {
				_ = pgExecTx(ctx, "SELECT pg_terminate_backend(pg_backend_pid())")
				return nil
			},
			"one that its handler ended": func(ctx context.Context) error { return pgExecTx(ctx, "ROLLBACK") },
		} {
			t.Run(over.name+"/"+name, func(t *testing.T) {
				for range 2 { // the second time over the record that was forgotten
					r := pgClaim()
					pgMustClaim(t, over.st, r, store.Claimed)
					ctx := over.st.Bind(t.Context(), r.ID, r.Owner)
					pgWant(t, "insert", pgExecTx(ctx, over.f.insertion(), 1), nil)
					pgWant(t, "the handler", spoil(ctx), nil)
					pgWant(t, "Unknown", pgUnknown(t, over.st, r), nil)
					pgWant(t, "Unknown again", pgUnknown(t, over.st, r), nil)
					if n := over.f.effects(t); n != 0 {
						t.Errorf("%d effects, want none", n)
					}
					other := over.f.Transactional(t)
					retry := r
					retry.Owner = store.NewOwner()
					pgMustClaim(t, other, retry, store.Lapsed)
					pgMustClaim(t, over.f.Leased(t), retry, store.Lapsed)
					got, err := other.Inspect(t.Context(), r.ID)
					if err != nil || got.State != store.StateUnknown || got.Reason != "the bank timed out" || got.Attempt != 1 {
						t.Fatalf("%+v, %v", got, err)
					}
					pgWant(t, "forget", other.Resolve(t.Context(), r.ID, store.Resolution{Fence: got.Fence, Forget: true}), nil)
					pgMustClaim(t, other, retry, store.Claimed) // the lock is free
					pgWant(t, "release", other.Release(t.Context(), retry.ID, retry.Owner), nil)
				}
			})
		}
	}
}
