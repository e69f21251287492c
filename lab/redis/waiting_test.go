package redis

import (
	"testing"
	"time"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/servers"
	repriseredis "github.com/reprise-go/reprise/store/redis"
)

// The end of an attempt is published only when a caller waits for it, which marks the
// record once, however often its waiters ask.
func TestRedisOnlyWatchedEndsArePublished(t *testing.T) {
	t.Parallel()
	client := labtest.RedisClient(t, servers.Redis.Start(t).Addr())
	st := labtest.RedisStore(t, client, repriseredis.Config{})
	complete := func(r store.ClaimRequest, granted store.ClaimResult) error {
		return st.Complete(t.Context(), redisCompletion(r, granted, "answer"))
	}
	release := func(r store.ClaimRequest, _ store.ClaimResult) error { return st.Release(t.Context(), r.ID, r.Owner) }
	for i, c := range []struct {
		name    string
		watched bool
		end     func(r store.ClaimRequest, granted store.ClaimResult) error
	}{
		{"complete", false, complete},
		{"complete without knowing the claim", false, func(r store.ClaimRequest, _ store.ClaimResult) error {
			return redisComplete(t, st, r, "answer")
		}},
		{"release", false, release},
		{"complete watched", true, complete},
		{"renew and complete watched", true, func(r store.ClaimRequest, granted store.ClaimResult) error {
			if _, err := st.Renew(t.Context(), []store.RenewRequest{{ID: r.ID, Owner: r.Owner, Lease: r.Lease}}); err != nil {
				return err
			}
			return complete(r, granted)
		}},
		{"claim again and complete watched", true, func(r store.ClaimRequest, _ store.ClaimResult) error {
			return complete(r, labtest.WantClaim(t, st, r, store.Claimed))
		}},
		{"release watched", true, release},
	} {
		r := labtest.NewClaim()
		r.Takeover = i%2 == 0 // makes no difference
		granted := labtest.WantClaim(t, st, r, store.Claimed)
		written := redisWritten(t, client)
		want := 0
		for range 3 {
			if c.watched {
				want = 1
				redisWaits(t, st, r)
			} else {
				labtest.WantClaim(t, st, labtest.Rival(r), store.InProgress)
			}
		}
		if n := redisWritten(t, client) - written; n != want {
			t.Errorf("%s: three claims of others wrote %d times, want %d", c.name, n, want)
		}
		before := redisCalls(t, client)["spublish"]
		labtest.Want(t, c.name, c.end(r, granted), nil)
		if n := redisCalls(t, client)["spublish"] - before; n != want {
			t.Errorf("%s publishes %d times, want %d", c.name, n, want)
		}
	}

	// A record that an operator ends may have unknown watchers.
	for _, resolution := range []store.Resolution{{Forget: true}, {Payload: []byte("answer"), Retention: time.Hour}} {
		r := labtest.NewClaim()
		r.Lease = time.Millisecond
		resolution.Fence = labtest.WantClaim(t, st, r, store.Claimed).Fence
		before := redisCalls(t, client)["spublish"]
		labtest.Eventually(t, "the lease ends", func() bool { return st.Resolve(t.Context(), r.ID, resolution) == nil })
		if n := redisCalls(t, client)["spublish"] - before; n != 1 {
			t.Errorf("%+v publishes %d times, want once", resolution, n)
		}
	}
}
