package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/servers"
)

// pgCalls are the calls of a store, each with its answer in a word.
func pgCalls(st store.Store) map[string]func(ctx context.Context, r store.ClaimRequest) string {
	word := func(err error, otherwise string) string {
		switch {
		case err == nil:
			return otherwise
		case errors.Is(err, store.ErrLeaseLost):
			return "lost"
		case errors.Is(err, store.ErrBusy):
			return "busy"
		case errors.Is(err, store.ErrUnknown):
			return "unknown"
		}
		return err.Error()
	}
	policy := store.Policy{Retention: time.Hour}
	claim := func(ctx context.Context, r store.ClaimRequest) string {
		r.Lease, r.Policy = time.Minute, policy
		got, err := st.Claim(ctx, r)
		return word(err, fmt.Sprint(got.Outcome, " ", got.Attempt))
	}
	return map[string]func(context.Context, store.ClaimRequest) string{
		"renew": func(ctx context.Context, r store.ClaimRequest) string {
			got, err := st.Renew(ctx, []store.RenewRequest{{ID: r.ID, Owner: r.Owner, Lease: time.Minute}})
			return word(err, fmt.Sprint(got))
		},
		"complete": func(ctx context.Context, r store.ClaimRequest) string {
			return word(st.Complete(ctx, store.CompleteRequest{ID: r.ID, Owner: r.Owner, Payload: []byte("p"), Policy: policy}), "done")
		},
		"unknown": func(ctx context.Context, r store.ClaimRequest) string {
			return word(st.Unknown(ctx, store.UnknownRequest{ID: r.ID, Owner: r.Owner, Reason: "why"}), "done")
		},
		"release": func(ctx context.Context, r store.ClaimRequest) string {
			return word(st.Release(ctx, r.ID, r.Owner), "done")
		},
		"claim":        claim,
		"rival claims": func(ctx context.Context, r store.ClaimRequest) string { return claim(ctx, labtest.Rival(r)) },
	}
}

// pgSlowModes are the ways in which the statements of a request are sent.
var pgSlowModes = map[string]pgx.QueryExecMode{"prepared": pgx.QueryExecModeCacheStatement, "exec": pgx.QueryExecModeExec}

const (
	pgOver   = "valid_until <= " + pgLate + " AND lease_until <= " + pgLate
	pgLapsed = "lease_until <= " + pgLate
)

// TestPostgresSlowCommits: a call that finds the record before its end, and commits after
// it, has taken place for every call that begins in between. None answers by its snapshot
// that the record has ended: it waits for the first call, or a renewal says busy.
func TestPostgresSlowCommits(t *testing.T) {
	t.Parallel()
	server := servers.SharedPostgres(t)
	f := pgGates(t, server)
	const took, runs, none = "done", "in-progress 0", "[busy]"
	for mode, exec := range pgSlowModes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			s := newPgSlow(t, server, f, exec)
			slow, quick := pgCalls(s.slow), pgCalls(s.quick)
			var group sync.WaitGroup
			few := make(chan struct{}, 4) // fewer calls than are combined
			for _, test := range []struct {
				until, first, did, second, want string
			}{
				{pgOver, "renew", "[renewed]", "complete", took},
				{pgOver, "renew", "[renewed]", "unknown", took},
				{pgOver, "renew", "[renewed]", "release", took},
				{pgOver, "renew", "[renewed]", "renew", none},
				{pgOver, "renew", "[renewed]", "claim", "claimed 1"},
				{pgOver, "renew", "[renewed]", "rival claims", runs},
				{pgOver, "claim", "claimed 1", "complete", took},
				{pgOver, "claim", "claimed 1", "unknown", took},
				{pgOver, "claim", "claimed 1", "release", took},
				{pgOver, "claim", "claimed 1", "renew", none},
				{pgOver, "claim", "claimed 1", "rival claims", runs},
				{pgOver, "complete", took, "complete", took},
				{pgOver, "complete", took, "unknown", "lost"},
				{pgOver, "complete", took, "release", took},
				{pgOver, "complete", took, "renew", none},
				{pgOver, "complete", took, "rival claims", "completed 0"},
				{pgOver, "unknown", took, "unknown", took},
				{pgOver, "unknown", took, "complete", "lost"},
				{pgOver, "unknown", took, "renew", none},
				{pgOver, "unknown", took, "rival claims", "lapsed 0"},
				{pgLapsed, "renew", "[renewed]", "rival claims", runs},
				{pgLapsed, "complete", took, "rival claims", "completed 0"},
				{pgLapsed, "complete", took, "claim", "completed 0"},
				{pgLapsed, "unknown", took, "rival claims", "lapsed 0"},
				{pgLapsed, "release", took, "rival claims", "claimed 1"},
			} {
				few <- struct{}{}
				group.Go(func() {
					defer func() { <-few }()
					t.Run(fmt.Sprintf("%s, then %s, of a record that is %s", test.first, test.second, map[string]string{pgOver: "over", pgLapsed: "lapsed"}[test.until]), func(t *testing.T) {
						first, second, _ := s.play(t, &pgMeeting{
							begin: func(t *testing.T, span time.Duration) store.ClaimRequest {
								t.Helper()
								r := labtest.NewClaim()
								r.Lease = span
								if test.until == pgOver {
									r.Retention = span
								}
								labtest.WantClaim(t, s.quick, r, store.Claimed)
								f.exec(t, f.pgDamage("retention = 3600000000"), r.ID[:]) // of an outcome that is unknown
								return r
							},
							first: slow[test.first], second: quick[test.second], late: map[bool]string{true: "[lost]", false: "lost"}[test.first == "renew"], until: test.until,
						})
						if first != test.did || second != test.want {
							t.Errorf("%s and %s, want %s and %s", first, second, test.did, test.want)
						}
					})
				})
			}
			group.Wait()
		})
	}
}

// TestPostgresTransactionMeetsASlowCommit: so does a completion in the handler's
// transaction.
func TestPostgresTransactionMeetsASlowCommit(t *testing.T) {
	t.Parallel()
	server := servers.SharedPostgres(t)
	f := pgGates(t, server)
	f.exec(t, "CREATE TABLE "+f.name("effects")+" (n integer NOT NULL)")
	s := newPgSlow(t, server, f, pgx.QueryExecModeCacheStatement)
	st := f.Transactional(t)
	did, got, _ := s.play(t, &pgMeeting{
		begin: func(t *testing.T, span time.Duration) store.ClaimRequest {
			t.Helper()
			r := labtest.Claimed(t, st)
			f.insert(t, pgTx(t, st, r), 1)
			until := fmt.Sprintf("%s + %d", pgLate, span.Microseconds())
			f.exec(t, f.pgDamage("lease_until = "+until+", valid_until = "+until), r.ID[:])
			return r
		},
		first: pgCalls(s.slow)["renew"], second: pgCalls(st)["complete"], late: "[lost]", until: pgOver,
	})
	if n := f.effects(t); did != "[renewed]" || got != "done" || n != 1 {
		t.Errorf("%s and %s with %d effects, want [renewed] and done with one", did, got, n)
	}
}
