package postgres

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"

	"github.com/jackc/pgx/v5"
	"github.com/reprise-go/reprise/servers"
	reprisepg "github.com/reprise-go/reprise/store/postgres"
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
		st   *reprisepg.TransactionalStore
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

// TestPostgresUnknownLetsNoOtherAttemptIn: between the end of the handler's transaction
// and the commit of the record no other process gets the lock.
func TestPostgresUnknownLetsNoOtherAttemptIn(t *testing.T) {
	t.Parallel()
	f, pgxStore := pgTxSetup(t)
	g, sqlStore, _ := pgSQLSetup(t)
	t.Run("pgx", func(t *testing.T) { noOtherAttemptIn(t, pgxStore, f.Transactional(t)) })
	t.Run("sql", func(t *testing.T) { noOtherAttemptIn(t, sqlStore, g.Transactional(t)) })
	t.Run("behind PgBouncer", func(t *testing.T) {
		server := servers.StartPostgres(t)
		bouncer := server.StartPgBouncer(t, "default_pool_size=8")
		f := pgSetup(t, server)
		pooled := pgOn(labtest.NewPool(t, bouncer.URL(), labtest.ExecMode(pgx.QueryExecModeExec)), f.Config)
		pooled.Config.ExecMode = pgx.QueryExecModeExec
		noOtherAttemptIn(t, pooled.Transactional(t), f.Transactional(t))
		if n := pgValue[int](t, f.Pool, "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"); n != 0 {
			t.Errorf("%d locks are left, want none", n)
		}
	})
}

func noOtherAttemptIn(t *testing.T, st, other *reprisepg.TransactionalStore) {
	t.Helper()
	seen := map[store.Outcome]int{}
	for range 100 {
		r := pgClaim()
		pgMustClaim(t, st, r, store.Claimed)
		began, done := make(chan struct{}), make(chan error, 1)
		go func() {
			close(began)
			done <- pgUnknown(t, st, r)
		}()
		<-began
		for deadline := time.Now().Add(10 * time.Second); ; {
			retry := r
			retry.Owner = store.NewOwner()
			ctx, cancel := pgCall(t)
			got, err := other.Claim(ctx, retry)
			cancel()
			if err != nil || got.Outcome != store.InProgress && got.Outcome != store.Lapsed || time.Now().After(deadline) {
				t.Fatalf("a retry is answered %v, %v", got.Outcome, err)
			}
			seen[got.Outcome]++
			if got.Outcome == store.Lapsed {
				break
			}
		}
		pgWant(t, "Unknown", <-done, nil)
	}
	t.Log(fmt.Sprint(seen))
}
