package redis

import (
	"testing"
	"time"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"

	"github.com/reprise-go/reprise/servers"
	repriseredis "github.com/reprise-go/reprise/store/redis"
)

// A script's writes are confirmed, and a script that wrote no data is not waited for. On
// a server without a replica the first is ErrNotReplicated.
func TestRedisScriptWritesAreConfirmed(t *testing.T) {
	t.Parallel()
	client := labtest.RedisClient(t, servers.Redis.Shared(t).Addr())
	prefix := labtest.RedisPrefix()
	st := labtest.RedisStore(t, client, repriseredis.Config{Prefix: prefix, Durability: repriseredis.Acked(1), AckTimeout: 10 * time.Millisecond})
	claim := func(r store.ClaimRequest) error { _, err := st.Claim(t.Context(), r); return err }
	rival := func(r store.ClaimRequest) error { return claim(labtest.Rival(r)) }
	complete := func(r store.ClaimRequest) error { return redisComplete(t, st, r, "answer") }
	renew := func(r store.ClaimRequest) error {
		_, err := st.Renew(t.Context(), []store.RenewRequest{{ID: r.ID, Owner: r.Owner, Lease: r.Lease}})
		return err
	}
	release := func(r store.ClaimRequest) error { return st.Release(t.Context(), r.ID, r.Owner) }
	resolve := func(r store.ClaimRequest) error {
		shown, err := st.Inspect(t.Context(), r.ID)
		labtest.Want(t, "inspect", err, nil)
		return st.Resolve(t.Context(), r.ID, store.Resolution{Fence: shown.Fence, Forget: true})
	}
	const runs, lapsed = 10 * time.Second, time.Minute
	for _, c := range []struct {
		name, record string
		age          time.Duration
		do           func(store.ClaimRequest) error
		want         error
	}{
		{"claim again", redisGoldenClaimed, runs, claim, store.ErrNotReplicated},
		{"take over", redisGoldenClaimed, lapsed, rival, store.ErrNotReplicated},
		{"renew", redisGoldenClaimed, runs, renew, store.ErrNotReplicated},
		{"complete", redisGoldenClaimed, runs, complete, store.ErrNotReplicated},
		{"complete again", redisGoldenCompleted, runs, complete, store.ErrNotReplicated},
		{"resolve", redisGoldenClaimed, lapsed, resolve, store.ErrNotReplicated},
		{"claim again what lapsed", redisGoldenClaimed, lapsed, claim, nil},
		{"claim what runs", redisGoldenClaimed, runs, rival, nil},
		{"claim what is completed", redisGoldenCompleted, runs, rival, nil},
		{"renew what is completed", redisGoldenCompleted, runs, renew, nil},
		{"release", redisGoldenClaimed, runs, release, nil},
	} {
		labtest.Want(t, c.name, c.do(redisGolden(t, client, prefix, c.record, c.age)), c.want)
	}
}
