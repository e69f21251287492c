package faults_test

import (
	"errors"
	"testing"
	"time"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/servers"
	repriseredis "github.com/reprise-go/reprise/store/redis"
)

// newClaim is a claim of a new operation, which is remembered for a day.
func newClaim() store.ClaimRequest {
	r := labtest.NewClaim()
	r.Retention = 24 * time.Hour
	return r
}

// The clock of the server jumps. The promises of the docs are by that clock: a lease that
// a jump ends is lost, and its owner cannot complete; one that a jump prolongs keeps
// others out.
func TestClockOfTheServerJumps(t *testing.T) {
	t.Parallel()
	type clocked func(*testing.T) (store.Store, *servers.Clock)
	for name, open := range map[string]clocked{
		"redis": func(t *testing.T) (store.Store, *servers.Clock) {
			s, clock := servers.Redis.StartWithClock(t)
			return labtest.RedisStore(t, labtest.RedisClient(t, s.Addr()), repriseredis.Config{}), clock
		},
		"postgres": func(t *testing.T) (store.Store, *servers.Clock) {
			s, clock := servers.StartPostgresWithClock(t)
			return labtest.SetupPostgres(t, s).Leased(t), clock
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			st, clock := open(t)

			first := newClaim()
			held := labtest.WantClaim(t, st, first, store.Claimed)
			labtest.WantClaim(t, st, labtest.Rival(first), store.InProgress)
			clock.Step(t, 2*time.Minute)
			careful := labtest.Rival(first)
			careful.Takeover = false
			labtest.WantClaim(t, st, careful, store.Lapsed)
			second := labtest.Rival(first)
			taken := labtest.WantClaim(t, st, second, store.Claimed)
			if taken.Attempt != 2 || taken.Fence <= held.Fence {
				t.Errorf("taken over as attempt %d with the fence %d, after %d", taken.Attempt, taken.Fence, held.Fence)
			}
			if err := labtest.Complete(t, st, first, "first"); !errors.Is(err, store.ErrLeaseLost) {
				t.Errorf("the former owner completed: %v", err)
			}
			clock.Step(t, -time.Hour)
			labtest.WantClaim(t, st, labtest.Rival(first), store.InProgress)
			labtest.Must(t, labtest.Complete(t, st, second, "second"))
			if got := labtest.WantClaim(t, st, labtest.Rival(first), store.Completed); string(got.Payload) != "second" {
				t.Errorf("replayed %q", got.Payload)
			}
			clock.Step(t, 0) // the retention counts from a clock that was an hour behind
			labtest.WantClaim(t, st, labtest.Rival(first), store.Completed)
			clock.Step(t, 22*time.Hour)
			labtest.WantClaim(t, st, labtest.Rival(first), store.Completed)
			clock.Step(t, 24*time.Hour)
			labtest.WantClaim(t, st, labtest.Rival(first), store.Claimed)

			released := newClaim()
			before := labtest.WantClaim(t, st, released, store.Claimed)
			labtest.Must(t, st.Release(t.Context(), released.ID, released.Owner))
			clock.Step(t, -time.Hour)
			after := labtest.WantClaim(t, st, labtest.Rival(released), store.Claimed)
			t.Logf("a released key that is claimed after the clock went back has the fence %d, before %d", after.Fence, before.Fence)
		})
	}
}
