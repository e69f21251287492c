package redis

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
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

// BenchmarkRedisCallers compares the store with one that sends every call alone, over a
// client with a connection for every caller: 1 to 256 callers, behind networks of several
// round trips. Both take turns of a fifth of a second, so -benchtime=12x is twelve
// shuffled rounds, of which the ratios are the medians.
func BenchmarkRedisCallers(b *testing.B) {
	direct := servers.Redis.Start(b).Addr()
	for _, delay := range []time.Duration{0, 200 * time.Microsecond, time.Millisecond, 3 * time.Millisecond, 8 * time.Millisecond, 30 * time.Millisecond} {
		addr := direct
		if delay > 0 {
			addr = servers.StartDelayLine(b, addr, delay).Addr()
		}
		for _, callers := range []int{1, 2, 4, 8, 16, 64, 256} {
			for _, kind := range []string{"new", "replay"} {
				b.Run(fmt.Sprintf("delay=%v/callers=%d/%s", delay, callers, kind), func(b *testing.B) {
					redisCompareCallers(b, addr, callers, kind == "replay")
				})
			}
		}
	}
}

func redisCompareCallers(b *testing.B, addr string, callers int, replays bool) {
	requests := []func(){
		redisRequests(b, addr, callers, replays, repriseredis.Config{}),
		redisRequests(b, addr, callers, replays, repriseredis.Config{NoCombining: true}),
	}
	for range 2 { // connections, scripts and caches
		for _, request := range requests {
			redisTurn(callers, request)
		}
	}
	var ratios []float64
	for b.Loop() {
		var perSecond [2]float64
		for _, i := range rand.Perm(len(requests)) {
			perSecond[i] = redisTurn(callers, requests[i])
		}
		ratios = append(ratios, perSecond[0]/perSecond[1])
	}
	slices.Sort(ratios)
	b.ReportMetric(ratios[len(ratios)/2], "x-client")
	b.ReportMetric(0, "ns/op")
}

// redisRequests returns a function that makes one request to a store, over a client with
// a connection for each caller.
func redisRequests(b *testing.B, addr string, callers int, replays bool, c repriseredis.Config) func() {
	b.Helper()
	c.Prefix = labtest.RedisPrefix()
	client := redis.NewClient(&redis.Options{Addr: addr, PoolSize: max(callers, 8), ContextTimeoutEnabled: true})
	b.Cleanup(func() { _ = client.Close() })
	st := labtest.RedisStore(b, client, c)
	ctx := context.WithoutCancel(b.Context())
	fresh := func() store.ClaimRequest {
		r := labtest.NewClaim()
		granted, err := st.Claim(ctx, r)
		labtest.Want(b, "claim", err, nil)
		labtest.Want(b, "complete", st.Complete(ctx, redisCompletion(r, granted, string(redisBody))), nil)
		return r
	}
	if !replays {
		return func() { fresh() }
	}
	done := make([]store.ClaimRequest, 256)
	for i := range done {
		done[i] = fresh()
	}
	var next atomic.Int64
	return func() {
		r := done[int(next.Add(1))%len(done)]
		r.Owner = store.NewOwner()
		_, err := st.Claim(ctx, r)
		labtest.Want(b, "replay", err, nil)
	}
}

// redisBody is a response with a body of 256 bytes.
var redisBody = make([]byte, 256+51)

// redisTurn returns how many requests a second callers make in a turn.
func redisTurn(callers int, request func()) float64 {
	const lasts = 200 * time.Millisecond
	var made atomic.Int64
	var calling sync.WaitGroup
	start := time.Now()
	for range callers {
		calling.Go(func() {
			for more := true; more; more = time.Since(start) < lasts {
				request()
				made.Add(1)
			}
		})
	}
	calling.Wait()
	return float64(made.Load()) / time.Since(start).Seconds()
}
