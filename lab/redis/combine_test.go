package redis

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/lab/servers"
	repriseredis "github.com/reprise-go/reprise/store/redis"
)

// redisStalled returns a store behind a network that stands still, and enough claims on
// their way that further ones queue.
func redisStalled(t *testing.T, claiming *sync.WaitGroup) (*repriseredis.Store, *servers.Proxy) {
	t.Helper()
	const lanes = 16
	proxy := servers.StartProxy(t, servers.Redis.Shared(t).Addr())
	client := labtest.RedisClient(t, proxy.Addr())
	store := labtest.RedisStore(t, client, repriseredis.Config{Prefix: labtest.RedisPrefix()})
	redisMustClaim(t, store, redisClaim(), reprise.Claimed)
	proxy.Set(t, servers.Stall)
	for range lanes {
		claiming.Go(func() { redisMustClaim(t, store, redisClaim(), reprise.Claimed) })
	}
	redisEventually(t, "all lanes are occupied", func() bool { return proxy.Counts().Open >= lanes })
	return store, proxy
}

// The time of one command runs out while it queues. That must not become the time of the
// others in its batch.
func TestRedisANearlyExpiredCommandFailsAlone(t *testing.T) {
	t.Parallel()
	var claiming sync.WaitGroup
	store, proxy := redisStalled(t, &claiming)
	deadline := time.Now().Add(time.Second)
	patient, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	late, cancel := context.WithDeadline(patient, deadline)
	defer cancel()
	var failed atomic.Int64
	for i := range 100 {
		claiming.Go(func() {
			if i == 50 {
				_, _ = store.Claim(late, redisClaim())
				return
			}
			if _, err := store.Claim(patient, redisClaim()); err != nil {
				failed.Add(1)
			}
		})
	}
	// When the first answers come and the batch is sent, it has less than 90 ms left, and
	// the answer to the batch takes longer.
	redisEventually(t, "the one has little time left", func() bool { return time.Until(deadline) < 240*time.Millisecond })
	proxy.Delay(0, 150*time.Millisecond)
	proxy.Set(t, servers.Forward)
	claiming.Wait()
	if n := failed.Load(); n > 0 {
		t.Errorf("%d of 99 claims failed with the one that had no time left", n)
	}
}

// Large replays that meet in a batch are fetched one by one, and arrive whole.
func TestRedisLargeReplaysInABatchArriveWhole(t *testing.T) {
	t.Parallel()
	var claiming sync.WaitGroup
	store, proxy := redisStalled(t, &claiming)
	proxy.Set(t, servers.Forward)
	claiming.Wait()
	var done []reprise.ClaimRequest
	answer := strings.Repeat("a", 300_000)
	for range 4 {
		r := redisClaim()
		redisMustClaim(t, store, r, reprise.Claimed)
		redisWant(t, "complete", redisComplete(t, store, r, answer), nil)
		done = append(done, r)
	}
	proxy.Set(t, servers.Stall)
	for i := range 100 {
		claiming.Go(func() {
			if i%2 == 0 {
				redisMustClaim(t, store, redisClaim(), reprise.Claimed)
			} else if got := redisMustClaim(t, store, done[i%len(done)], reprise.Completed); string(got.Payload) != answer {
				t.Errorf("a replay of %d bytes, want %d", len(got.Payload), len(answer))
			}
		})
	}
	proxy.Set(t, servers.Forward)
	claiming.Wait()
}
