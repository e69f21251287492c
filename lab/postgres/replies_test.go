package postgres

import (
	"context"
	"errors"
	"testing"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"

	"github.com/jackc/pgx/v5"
	"github.com/reprise-go/reprise/servers"
)

// TestPostgresLostReplies: a statement whose request or reply is lost is never answered
// with a definite error that is wrong, and its repetition by the same owner gets the
// answer that was lost.
func TestPostgresLostReplies(t *testing.T) {
	t.Parallel()
	server := servers.SharedPostgres(t)
	proxy := servers.StartProxy(t, server.Addr())
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeExec, pgx.QueryExecModeCacheStatement} {
		f := pgSetup(t, server)
		st, witness := pgOn(labtest.NewPool(t, proxy.URL(server.URL()), labtest.ExecMode(mode)), f.Config).Leased(t), f.Leased(t)
		for _, action := range []servers.Action{servers.LoseReply, servers.LoseRequest, servers.CutAfter} {
			lost := func(what, statement string, operation func(context.Context) error) {
				t.Helper()
				ctx, cancel := labtest.Call(t)
				defer cancel()
				pgMustNotFail(t, st, labtest.NewClaim()) // there is a connection, and it knows the statement
				var err error
				for range 3 { // another connection, such as one that cancels, may have taken the loss
					proxy.On(statement, action)
					if err = operation(ctx); err != nil {
						break
					}
				}
				if !errors.Is(err, store.ErrUnknown) {
					t.Errorf("%v: %s: %v, want ErrUnknown", mode, what, err)
				}
				labtest.Eventually(t, what+" repeated", func() bool {
					err := operation(ctx)
					if err != nil && !errors.Is(err, store.ErrUnknown) {
						t.Fatalf("%v: %s repeated: %v", mode, what, err)
					}
					return err == nil
				})
			}
			r := labtest.NewClaim()
			var granted store.ClaimResult
			lost("claim", "", func(ctx context.Context) (err error) { granted, err = st.Claim(ctx, r); return err })
			if granted.Outcome != store.Claimed || granted.Attempt != 1 {
				t.Errorf("the repeated claim answered %v, attempt %d", granted.Outcome, granted.Attempt)
			}
			labtest.WantClaim(t, witness, labtest.Rival(r), store.InProgress)
			lost("renew", "", func(ctx context.Context) error {
				statuses, err := st.Renew(ctx, []store.RenewRequest{{ID: r.ID, Owner: r.Owner, Lease: r.Lease}})
				switch {
				case err != nil:
					return err
				case statuses[0] == store.RenewBusy: // the statement whose client is gone still has the row
					return store.ErrUnknown
				case statuses[0] != store.Renewed:
					t.Errorf("the repeated renewal answered %v", statuses[0])
				}
				return nil
			})
			lost("complete", "", func(ctx context.Context) error { return st.Complete(ctx, labtest.Completion(r, "answer")) })
			labtest.WantClaim(t, witness, labtest.Rival(r), store.Completed)
			released := labtest.Claimed(t, st)
			lost("release", "UPDATE", func(ctx context.Context) error { return st.Release(ctx, released.ID, released.Owner) })
			labtest.WantClaim(t, witness, labtest.Rival(released), store.Claimed)
		}
	}
}
