package postgres

import (
	"context"
	"errors"
	"testing"
	"time"

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
		through := pgOn(labtest.NewPool(t, proxy.URL(server.URL()), labtest.ExecMode(mode)), f.Config)
		st, witness := through.Leased(t), f.Leased(t)
		for _, action := range []servers.Action{servers.LoseReply, servers.LoseRequest, servers.CutAfter} {
			lost := func(what, statement string, operation func(context.Context) error) {
				t.Helper()
				ctx, cancel := pgCall(t)
				defer cancel()
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
			pgLoseEach(t, st, witness, lost)
		}
	}
}

// pgLoseEach takes a record through its life and loses each result once.
func pgLoseEach(t *testing.T, st, witness store.Store, lost func(what, statement string, operation func(context.Context) error)) {
	t.Helper()
	ready := func() { pgMustNotFail(t, st, labtest.NewClaim()) } // there is a connection, and it knows the statement
	r := labtest.NewClaim()
	var granted store.ClaimResult
	ready()
	lost("claim", "", func(ctx context.Context) (err error) { granted, err = st.Claim(ctx, r); return err })
	if granted.Outcome != store.Claimed || granted.Attempt != 1 {
		t.Errorf("the repeated claim answered %v, attempt %d", granted.Outcome, granted.Attempt)
	}
	labtest.WantClaim(t, witness, labtest.Rival(r), store.InProgress)
	ready()
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
	ready()
	lost("complete", "", func(ctx context.Context) error { return st.Complete(ctx, labtest.Completion(r, "answer")) })
	labtest.WantClaim(t, witness, labtest.Rival(r), store.Completed)

	released := labtest.NewClaim()
	labtest.WantClaim(t, st, released, store.Claimed)
	lost("release", "UPDATE", func(ctx context.Context) error { return st.Release(ctx, released.ID, released.Owner) })
	labtest.WantClaim(t, witness, labtest.Rival(released), store.Claimed)
}

// TestPostgresHangs: a hanging server costs a call no more than its deadline; if the
// server never got the request, the step was not applied, otherwise its outcome is
// unknown.
func TestPostgresHangs(t *testing.T) {
	t.Parallel()
	server := servers.SharedPostgres(t)
	proxy := servers.StartProxy(t, server.Addr())
	f := pgSetup(t, server)
	through := pgOn(labtest.NewPool(t, proxy.URL(server.URL())), f.Config)
	st, transactional := through.Leased(t), through.Transactional(t)
	attempt := labtest.NewClaim()
	labtest.WantClaim(t, transactional, attempt, store.Claimed)
	labtest.WantClaim(t, st, labtest.NewClaim(), store.Claimed)
	proxy.Set(t, servers.Stall)
	defer proxy.Set(t, servers.Forward) // pgx cleans broken connections up through it
	for what, operation := range map[string]func(context.Context) error{
		"claim":               func(ctx context.Context) error { _, err := st.Claim(ctx, labtest.NewClaim()); return err },
		"transactional claim": func(ctx context.Context) error { _, err := transactional.Claim(ctx, labtest.NewClaim()); return err },
		"commit": func(ctx context.Context) error {
			return transactional.Complete(ctx, labtest.Completion(attempt, "answer"))
		},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		err := operation(ctx)
		cancel()
		if !errors.Is(err, store.ErrUnknown) && !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
