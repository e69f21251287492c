package redis

import (
	"testing"
	"time"

	"github.com/reprise-go/reprise/lab/internal/labtest"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/lab/servers"
	repriseredis "github.com/reprise-go/reprise/store/redis"
)

// What a script wrote is confirmed, and an answer without a write is not waited for. On a
// server without a replica the first is ErrNotReplicated.
func TestRedisWhatAScriptWroteIsConfirmed(t *testing.T) {
	t.Parallel()
	client := labtest.RedisClient(t, servers.Redis.Shared(t).Addr())
	prefix := labtest.RedisPrefix()
	store := labtest.RedisStore(t, client, repriseredis.Config{Prefix: prefix, Durability: repriseredis.Acked(1), AckTimeout: 10 * time.Millisecond})
	claim := func(r reprise.ClaimRequest) error { _, err := store.Claim(t.Context(), r); return err }
	rival := func(r reprise.ClaimRequest) error { return claim(redisRival(r)) }
	complete := func(r reprise.ClaimRequest) error { return redisComplete(t, store, r, "answer") }
	renew := func(r reprise.ClaimRequest) error {
		_, err := store.Renew(t.Context(), []reprise.RenewRequest{{ID: r.ID, Owner: r.Owner, Lease: r.Lease}})
		return err
	}
	release := func(r reprise.ClaimRequest) error { return store.Release(t.Context(), r.ID, r.Owner) }
	resolve := func(r reprise.ClaimRequest) error {
		shown, err := store.Inspect(t.Context(), r.ID)
		redisWant(t, "inspect", err, nil)
		return store.Resolve(t.Context(), r.ID, reprise.Resolution{Fence: shown.Fence, Forget: true})
	}
	const runs, lapsed = 10 * time.Second, time.Minute
	for _, c := range []struct {
		name, record string
		age          time.Duration
		do           func(reprise.ClaimRequest) error
		want         error
	}{
		{"claim again", redisGoldenClaimed, runs, claim, reprise.ErrNotReplicated},
		{"take over", redisGoldenClaimed, lapsed, rival, reprise.ErrNotReplicated},
		{"renew", redisGoldenClaimed, runs, renew, reprise.ErrNotReplicated},
		{"complete", redisGoldenClaimed, runs, complete, reprise.ErrNotReplicated},
		{"complete again", redisGoldenCompleted, runs, complete, reprise.ErrNotReplicated},
		{"resolve", redisGoldenClaimed, lapsed, resolve, reprise.ErrNotReplicated},
		{"claim again what lapsed", redisGoldenClaimed, lapsed, claim, nil},
		{"claim what runs", redisGoldenClaimed, runs, rival, nil},
		{"claim what is completed", redisGoldenCompleted, runs, rival, nil},
		{"renew what is completed", redisGoldenCompleted, runs, renew, nil},
		{"release", redisGoldenClaimed, runs, release, nil},
	} {
		redisWant(t, c.name, c.do(redisGolden(t, client, prefix, c.record, c.age)), c.want)
	}
}
