package redis

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/servers"
	repriseredis "github.com/reprise-go/reprise/store/redis"
)

// redisCounted returns a store over a client with a usual pool, and the number of calls
// that its pipeline sent.
func redisCounted(t *testing.T) (*repriseredis.Store, *atomic.Int64) {
	t.Helper()
	var pipelined atomic.Int64
	client := labtest.RedisClient(t, servers.Redis.Shared(t).Addr())
	return labtest.RedisStore(t, client, repriseredis.Config{
		Prefix: labtest.RedisPrefix(),
		Hook:   func(context.Context, repriseredis.Pipelined) { pipelined.Add(1) },
	}), &pipelined
}

// redisClaimTogether makes claims at the same time.
func redisClaimTogether(t *testing.T, st store.Store, callers int) {
	t.Helper()
	var claiming sync.WaitGroup
	for range callers {
		claiming.Go(func() { redisMustClaim(t, st, redisClaim(), store.Claimed) })
	}
	claiming.Wait()
}

// A few calls at a time go through the client. More of them share a pipeline.
func TestRedisFewCallsGoThroughTheClient(t *testing.T) {
	t.Parallel()
	st, pipelined := redisCounted(t)
	for range 100 {
		redisClaimTogether(t, st, 4)
	}
	if n := pipelined.Load(); n > 0 {
		t.Errorf("%d calls of four callers were pipelined", n)
	}
	redisEventually(t, "calls of many callers are pipelined", func() bool {
		redisClaimTogether(t, st, 64)
		return pipelined.Load() > 0
	})
}

// The calls of an attempt may take both ways: they mean the same by both.
func TestRedisBothWaysAgreeOnAnAttempt(t *testing.T) {
	t.Parallel()
	st, pipelined := redisCounted(t)
	r := redisClaim()
	granted := redisMustClaim(t, st, r, store.Claimed)
	again := func() {
		t.Helper()
		if got := redisMustClaim(t, st, r, store.Claimed); got.Attempt != granted.Attempt || got.Fence != granted.Fence {
			t.Errorf("its owner claims again and gets attempt %d and fence %d, had %d and %d", got.Attempt, got.Fence, granted.Attempt, granted.Fence)
		}
		redisMustClaim(t, st, redisRival(r), store.InProgress)
	}
	again()
	if n := pipelined.Load(); n > 0 {
		t.Fatalf("%d calls of one caller were pipelined", n)
	}
	byPipeline := func(what string, call func()) {
		redisEventually(t, what+" is pipelined", func() bool {
			redisClaimTogether(t, st, 64)
			before := pipelined.Load()
			call()
			return pipelined.Load() > before
		})
	}
	byPipeline("a claim", again)
	complete := func() {
		redisWant(t, "complete", st.Complete(t.Context(), redisCompletion(r, granted, "answer")), nil)
	}
	complete()
	byPipeline("a completion", complete)
	byPipeline("a replay", func() { redisMustClaim(t, st, redisRival(r), store.Completed) })
	redisEventually(t, "a replay goes through the client", func() bool {
		before := pipelined.Load()
		redisMustClaim(t, st, redisRival(r), store.Completed)
		return pipelined.Load() == before
	})
}
