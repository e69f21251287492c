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

// Large replays fill the link that all connections share. Claims go on beside them as
// they do where every command has a connection to itself: both stores work at the same
// time, until both have replayed a number of answers, so a busy machine slows both down.
func TestRedisLargeReplaysLeaveRoomForClaims(t *testing.T) {
	t.Parallel()
	const replays = 48
	alone, together := &redisLink{}, &redisLink{}
	var measuring sync.WaitGroup
	over := func() bool {
		return t.Failed() || min(alone.replays.Load(), together.replays.Load()) >= replays
	}
	measuring.Go(func() { alone.replayAndClaim(t, repriseredis.Config{NoCombining: true}, over) })
	measuring.Go(func() { together.replayAndClaim(t, repriseredis.Config{}, over) })
	measuring.Wait()
	t.Logf("one by one: %d claims, %d replays; together: %d claims, %d replays", alone.claims.Load(), alone.replays.Load(), together.claims.Load(), together.replays.Load())
	if one, other := alone.claims.Load(), together.claims.Load(); 4*other < one {
		t.Errorf("%d claims beside large replays, and %d one by one", other, one)
	}
}

// redisLink counts the calls on a link.
type redisLink struct{ claims, replays atomic.Int64 }

// replayAndClaim has eight callers that replay 1 MiB and eight that claim new keys share
// a link.
func (l *redisLink) replayAndClaim(t *testing.T, c repriseredis.Config, over func() bool) {
	t.Helper()
	const callers = 8
	server := servers.Redis.Shared(t)
	c.Prefix = labtest.RedisPrefix()
	large := make([]store.ClaimRequest, callers)
	direct := labtest.RedisStore(t, labtest.RedisClient(t, server.Addr()), c)
	payload := strings.Repeat("x", 1<<20)
	for i := range large {
		large[i] = redisClaim()
		redisMustClaim(t, direct, large[i], store.Claimed)
		redisWant(t, "complete", redisComplete(t, direct, large[i], payload), nil)
	}
	proxy := servers.StartProxy(t, server.Addr())
	client := redis.NewClient(&redis.Options{Addr: proxy.Addr(), ContextTimeoutEnabled: true, ReadTimeout: time.Minute}) // the link is slow
	defer client.Close()
	st := labtest.RedisStore(t, client, c)
	for range 20 { // connections, and scripts
		redisMustClaim(t, st, redisClaim(), store.Claimed)
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
		calling.Go(func() { call(func() store.ClaimRequest { return redisRival(replay) }, store.Completed, &l.replays) })
		calling.Go(func() { call(redisClaim, store.Claimed, &l.claims) })
	}
	calling.Wait()
}
