package redis

import (
	"testing"

	"github.com/reprise-go/reprise/lab/internal/labtest"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/lab/servers"
	repriseredis "github.com/reprise-go/reprise/store/redis"
)

func TestRedisRunsAnOperationOnceAndReplaysIt(t *testing.T) {
	t.Parallel()
	store := labtest.RedisStore(t, labtest.RedisClient(t, servers.Redis.Shared(t).Addr()), repriseredis.Config{Prefix: labtest.RedisPrefix()})
	r := redisClaim()
	redisMustClaim(t, store, r, reprise.Claimed)
	duplicate := r
	duplicate.Owner = reprise.NewOwner()
	redisMustClaim(t, store, duplicate, reprise.InProgress)
	redisWant(t, "complete by another", redisComplete(t, store, duplicate, "no"), reprise.ErrLeaseLost)
	redisWant(t, "complete", redisComplete(t, store, r, "yes\x00\xff"), nil)
	if got := redisMustClaim(t, store, duplicate, reprise.Completed); string(got.Payload) != "yes\x00\xff" {
		t.Fatalf("replayed %q", got.Payload)
	}
}
