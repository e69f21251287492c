package redis

import (
	"testing"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"

	"github.com/reprise-go/reprise/servers"
	repriseredis "github.com/reprise-go/reprise/store/redis"
)

func TestRedisRunsAnOperationOnceAndReplaysIt(t *testing.T) {
	t.Parallel()
	st := labtest.RedisStore(t, labtest.RedisClient(t, servers.Redis.Shared(t).Addr()), repriseredis.Config{Prefix: labtest.RedisPrefix()})
	r := redisClaim()
	redisMustClaim(t, st, r, store.Claimed)
	duplicate := r
	duplicate.Owner = store.NewOwner()
	redisMustClaim(t, st, duplicate, store.InProgress)
	redisWant(t, "complete by another", redisComplete(t, st, duplicate, "no"), store.ErrLeaseLost)
	redisWant(t, "complete", redisComplete(t, st, r, "yes\x00\xff"), nil)
	if got := redisMustClaim(t, st, duplicate, store.Completed); string(got.Payload) != "yes\x00\xff" {
		t.Fatalf("replayed %q", got.Payload)
	}
}
