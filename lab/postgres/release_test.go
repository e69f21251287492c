package postgres

import (
	"context"
	"testing"
	"time"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/servers"
)

// TestPostgresReleaseWaitsForItsClaim: a release does not return nil while a claim of its
// owner may still commit, whether that creates the record, or takes it over.
func TestPostgresReleaseWaitsForItsClaim(t *testing.T) {
	t.Parallel()
	server := servers.SharedPostgres(t)
	f := pgGates(t, server)
	for mode, exec := range pgSlowModes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			s := newPgSlow(t, server, f, exec)
			slow, quick := pgCalls(s.slow), pgCalls(s.quick)
			for what, test := range map[string]struct {
				there bool
				did   string
			}{"new": {false, "claimed 1"}, "takeover": {true, "claimed 2"}} {
				m := &pgMeeting{
					begin: func(t *testing.T, _ time.Duration) store.ClaimRequest {
						t.Helper()
						r := labtest.NewClaim()
						if test.there {
							labtest.WantClaim(t, s.quick, r, store.Claimed)
							f.exec(t, f.pgDamage("lease_until = "+pgLate), r.ID[:])
						}
						return labtest.Rival(r)
					},
					first: slow["claim"], second: quick["release"], until: pgLapsed,
				}
				did, got, r := s.play(t, m)
				if did != test.did || got != "done" {
					t.Errorf("%s: %s and %s, want %s and done", what, did, got, test.did)
				}
				if n := pgValue[int](t, f.Pool, "SELECT count(*) FROM "+f.records()+" WHERE id = $1 AND owner = $2", r.ID[:], r.Owner[:]); n != 0 {
					t.Errorf("%s: the record of the released claim is there", what)
				}
				m.impatient = true
				m.second = func(ctx context.Context, r store.ClaimRequest) string {
					ctx, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
					defer cancel()
					return quick["release"](ctx, r)
				}
				if _, got, _ = s.play(t, m); got == "done" {
					t.Errorf("%s: released, and the claim commits afterwards", what)
				}
			}
		})
	}
}
