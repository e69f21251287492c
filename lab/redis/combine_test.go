package redis

import (
	"context"
	"errors"
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

// redisPipelined returns a store behind a proxy whose pipeline is connected.
func redisPipelined(t *testing.T, c repriseredis.Config) (*repriseredis.Store, *servers.Proxy) {
	t.Helper()
	proxy := servers.StartProxy(t, servers.Redis.Shared(t).Addr())
	return redisPipelinedBy(t, redisSmallClient(t, proxy.Addr()), c), proxy
}

// redisSmallClient returns a client with one connection, which leaves even a call that is
// alone to the pipeline. It is closed when the test ends.
func redisSmallClient(t *testing.T, addr string) *redis.Client {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: addr, PoolSize: 1, ContextTimeoutEnabled: true})
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// redisPipelinedBy returns a store over client, which has one connection, whose pipeline
// is connected.
func redisPipelinedBy(t *testing.T, client redis.UniversalClient, c repriseredis.Config) *repriseredis.Store {
	t.Helper()
	if c.Prefix == "" {
		c.Prefix = labtest.RedisPrefix()
	}
	var pipelined atomic.Bool
	hook := c.Hook
	c.Hook = func(ctx context.Context, p repriseredis.Pipelined) {
		pipelined.Store(true)
		if hook != nil {
			hook(ctx, p)
		}
	}
	st := labtest.RedisStore(t, client, c)
	redisEventually(t, "a call is pipelined", func() bool {
		redisMustClaim(t, st, redisClaim(), store.Claimed)
		return pipelined.Load()
	})
	return st
}

// The time of one command runs out in a batch. That must not become the time of the
// others.
func TestRedisALateCommandFailsAlone(t *testing.T) {
	t.Parallel()
	st, proxy := redisPipelined(t, repriseredis.Config{})
	proxy.Set(t, servers.Stall)
	patient, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	late, cancel := context.WithTimeout(patient, 200*time.Millisecond)
	defer cancel()
	left := make(chan struct{})
	var claiming sync.WaitGroup
	var failed atomic.Int64
	for i := range 100 {
		claiming.Go(func() {
			if i == 50 {
				if _, err := st.Claim(late, redisClaim()); !errors.Is(err, store.ErrUnknown) {
					t.Errorf("the late one: %v", err)
				}
				close(left)
				return
			}
			if _, err := st.Claim(patient, redisClaim()); err != nil {
				failed.Add(1)
			}
		})
	}
	<-left
	proxy.Set(t, servers.Forward)
	claiming.Wait()
	if n := failed.Load(); n > 0 {
		t.Errorf("%d of 99 claims failed with the one that had no time left", n)
	}
}

// Large replays share a connection with others, and arrive whole.
func TestRedisLargeReplaysInABatchArriveWhole(t *testing.T) {
	t.Parallel()
	st, proxy := redisPipelined(t, repriseredis.Config{})
	var done []store.ClaimRequest
	answer := strings.Repeat("a", 300_000)
	for range 4 {
		r := redisClaim()
		redisMustClaim(t, st, r, store.Claimed)
		redisWant(t, "complete", redisComplete(t, st, r, answer), nil)
		done = append(done, r)
	}
	proxy.Set(t, servers.Stall)
	var claiming sync.WaitGroup
	for i := range 100 {
		claiming.Go(func() {
			if i%2 == 0 {
				redisMustClaim(t, st, redisClaim(), store.Claimed)
			} else if got := redisMustClaim(t, st, done[i%len(done)], store.Completed); string(got.Payload) != answer {
				t.Errorf("a replay of %d bytes, want %d", len(got.Payload), len(answer))
			}
		})
	}
	proxy.Set(t, servers.Forward)
	claiming.Wait()
}
