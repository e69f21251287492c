package redis

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/servers"
	repriseredis "github.com/reprise-go/reprise/store/redis"
)

// redisLinkWidth is a network of 100 Mbit/s, in bytes a second.
const redisLinkWidth = 100_000_000 / 8

// Large replays fill the link that all connections share, and claims go on beside them:
// eight callers replay 1 MiB, and eight claim new keys. A claim that waited for a replay
// each time would be made as often as one.
func TestRedisLargeReplaysLeaveRoomForClaims(t *testing.T) {
	t.Parallel()
	const callers, enough = 8, 48
	c := repriseredis.Config{Prefix: labtest.RedisPrefix()}
	var claims, replays atomic.Int64
	over := func() bool { return t.Failed() || replays.Load() >= enough }
	server := servers.Redis.Shared(t)
	large := make([]store.ClaimRequest, callers)
	direct := labtest.RedisStore(t, labtest.RedisClient(t, server.Addr()), c)
	payload := strings.Repeat("x", 1<<20)
	for i := range large {
		large[i] = labtest.NewClaim()
		labtest.WantClaim(t, direct, large[i], store.Claimed)
		labtest.Want(t, "complete", redisComplete(t, direct, large[i], payload), nil)
	}
	proxy := servers.StartProxy(t, server.Addr())
	client := redis.NewClient(&redis.Options{Addr: proxy.Addr(), ContextTimeoutEnabled: true, ReadTimeout: time.Minute}) // the link is slow
	defer client.Close()
	st := labtest.RedisStore(t, client, c)
	for range 20 { // connections, and scripts
		labtest.WantClaim(t, st, labtest.NewClaim(), store.Claimed)
	}
	proxy.Share(redisLinkWidth)

	call := func(request func() store.ClaimRequest, want store.Outcome, made *atomic.Int64) {
		for !over() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			got, err := st.Claim(ctx, request())
			cancel()
			if err != nil || got.Outcome != want || want == store.Completed && string(got.Payload) != payload {
				t.Errorf("a claim on a shared link: %v, %v, a payload of %d bytes; want %v", got.Outcome, err, len(got.Payload), want)
				return
			}
			made.Add(1)
		}
	}
	var calling sync.WaitGroup
	for _, replay := range large {
		calling.Go(func() { call(func() store.ClaimRequest { return labtest.Rival(replay) }, store.Completed, &replays) })
		calling.Go(func() { call(labtest.NewClaim, store.Claimed, &claims) })
	}
	calling.Wait()
	if t.Logf("%d claims beside %d replays", claims.Load(), replays.Load()); claims.Load() < 2*replays.Load() {
		t.Error("claims wait for replays")
	}
}
