package redis

import (
	"testing"
	"time"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/servers"
	repriseredis "github.com/reprise-go/reprise/store/redis"
)

// The end of an attempt is published only when a caller waits for it.
func TestRedisOnlyWatchedEndsArePublished(t *testing.T) {
	t.Parallel()
	client := labtest.RedisClient(t, servers.Redis.Start(t).Addr())
	st := labtest.RedisStore(t, client, repriseredis.Config{})
	published := func() int { return redisCalls(t, client)["spublish"] }
	for _, c := range []struct {
		name    string
		watched bool
		end     func(r store.ClaimRequest, granted store.ClaimResult) error
		want    int
	}{
		{"complete", false, func(r store.ClaimRequest, granted store.ClaimResult) error {
			return st.Complete(t.Context(), redisCompletion(r, granted, "answer"))
		}, 0},
		{"complete without knowing the claim", false, func(r store.ClaimRequest, _ store.ClaimResult) error {
			return redisComplete(t, st, r, "answer")
		}, 0},
		{"release", false, func(r store.ClaimRequest, _ store.ClaimResult) error {
			return st.Release(t.Context(), r.ID, r.Owner)
		}, 0},
		{"complete watched", true, func(r store.ClaimRequest, granted store.ClaimResult) error {
			return st.Complete(t.Context(), redisCompletion(r, granted, "answer"))
		}, 1},
		{"renew and complete watched", true, func(r store.ClaimRequest, granted store.ClaimResult) error {
			if _, err := st.Renew(t.Context(), []store.RenewRequest{{ID: r.ID, Owner: r.Owner, Lease: r.Lease}}); err != nil {
				return err
			}
			return st.Complete(t.Context(), redisCompletion(r, granted, "answer"))
		}, 1},
		{"claim again and complete watched", true, func(r store.ClaimRequest, _ store.ClaimResult) error {
			again := labtest.WantClaim(t, st, r, store.Claimed)
			return st.Complete(t.Context(), redisCompletion(r, again, "answer"))
		}, 1},
		{"release watched", true, func(r store.ClaimRequest, _ store.ClaimResult) error {
			return st.Release(t.Context(), r.ID, r.Owner)
		}, 1},
	} {
		r := labtest.NewClaim()
		granted := labtest.WantClaim(t, st, r, store.Claimed)
		if c.watched {
			for range 3 {
				redisWaits(t, st, r)
			}
		}
		before := published()
		labtest.Want(t, c.name, c.end(r, granted), nil)
		if n := published() - before; n != c.want {
			t.Errorf("%s publishes %d times, want %d", c.name, n, c.want)
		}
	}

	// A record that an operator ends may have unknown watchers.
	for _, resolution := range []store.Resolution{{Forget: true}, {Payload: []byte("answer"), Retention: time.Hour}} {
		r := redisGolden(t, client, labtest.ServicePrefix, redisGoldenClaimed, time.Minute)
		lapsed, err := st.Inspect(t.Context(), r.ID)
		labtest.Want(t, "inspect", err, nil)
		resolution.Fence = lapsed.Fence
		before := published()
		labtest.Want(t, "resolve", st.Resolve(t.Context(), r.ID, resolution), nil)
		if n := published() - before; n != 1 {
			t.Errorf("%+v publishes %d times, want once", resolution, n)
		}
	}
}

// Marking a record as watched writes it once, however often its waiters ask.
func TestRedisWaitersWriteOnce(t *testing.T) {
	t.Parallel()
	client := labtest.RedisClient(t, servers.Redis.Start(t).Addr())
	st := labtest.RedisStore(t, client, repriseredis.Config{})
	r := labtest.Claimed(t, st)
	before := redisWritten(t, client)
	for range 10 {
		redisWaits(t, st, r)
	}
	if n := redisWritten(t, client) - before; n != 1 {
		t.Errorf("ten waiting claims wrote %d times, want once", n)
	}
}
