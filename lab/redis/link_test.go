package redis

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/servers"
	repriseredis "github.com/reprise-go/reprise/store/redis"
)

// redisLinkWidth is a network of 100 Mbit/s, in bytes a second.
const redisLinkWidth = 100_000_000 / 8

// Large replays fill the link that all connections share. Claims go on beside them as
// they do where every command has a connection to itself: both are measured at the same
// time, so a busy machine slows both down.
func TestRedisLargeReplaysLeaveRoomForClaims(t *testing.T) {
	t.Parallel()
	var alone, pipelined *redisLinkResult
	var measuring sync.WaitGroup
	measuring.Go(func() { alone = redisReplayAndClaim(t, repriseredis.Config{NoCombining: true}) })
	measuring.Go(func() { pipelined = redisReplayAndClaim(t, repriseredis.Config{}) })
	measuring.Wait()
	if t.Failed() {
		return
	}
	t.Logf("one by one: %v", alone)
	t.Logf("in a pipeline: %v", pipelined)
	if len(alone.claims) == 0 || len(pipelined.replays) == 0 {
		t.Fatal("no claims or no replays, so nothing was shown")
	}
	if 8*len(pipelined.claims) < len(alone.claims) {
		t.Errorf("%d claims beside large replays, and %d one by one", len(pipelined.claims), len(alone.claims))
	}
	if one, other := alone.median(), pipelined.median(); other > 8*one {
		t.Errorf("half of the claims took %v beside large replays, and %v one by one", other, one)
	}
}

// redisLinkResult has the durations of the calls on a link.
type redisLinkResult struct {
	mu              sync.Mutex
	claims, replays []time.Duration
}

func (r *redisLinkResult) median() time.Duration {
	slices.Sort(r.claims)
	return r.claims[len(r.claims)/2]
}

func (r *redisLinkResult) String() string {
	return fmt.Sprintf("%d claims, the median took %v; %d replays", len(r.claims), r.median(), len(r.replays))
}

// redisReplayAndClaim has eight callers that replay 1 MiB and eight that claim new keys
// share a link for a while.
func redisReplayAndClaim(t *testing.T, c repriseredis.Config) *redisLinkResult {
	t.Helper()
	r := &redisLinkResult{}
	const callers, lasts = 8, 4 * time.Second
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
	st := labtest.RedisStore(t, labtest.RedisClient(t, proxy.Addr()), c)
	for range 20 { // connections, and scripts
		redisMustClaim(t, st, redisClaim(), store.Claimed)
	}
	proxy.Share(redisLinkWidth)

	end := time.Now().Add(lasts)
	call := func(request func() store.ClaimRequest, want store.Outcome, took *[]time.Duration) {
		for time.Now().Before(end) {
			start := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			got, err := st.Claim(ctx, request())
			cancel()
			if err != nil || got.Outcome != want || want == store.Completed && string(got.Payload) != payload {
				t.Errorf("a claim on a shared link: %v, %v, a payload of %d bytes; want %v", got.Outcome, err, len(got.Payload), want)
				return
			}
			r.mu.Lock()
			*took = append(*took, time.Since(start))
			r.mu.Unlock()
		}
	}
	var calling sync.WaitGroup
	for _, replay := range large {
		calling.Go(func() { call(func() store.ClaimRequest { return redisRival(replay) }, store.Completed, &r.replays) })
		calling.Go(func() { call(redisClaim, store.Claimed, &r.claims) })
	}
	calling.Wait()
	return r
}
