package redis

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
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
	server := servers.Redis.Start(b)
	for _, delay := range []time.Duration{0, 200 * time.Microsecond, time.Millisecond, 3 * time.Millisecond, 8 * time.Millisecond, 30 * time.Millisecond} {
		addr := server.Addr()
		if delay > 0 {
			addr = servers.StartDelayLine(b, addr, delay).Addr()
		}
		for _, callers := range []int{1, 2, 4, 8, 16, 64, 256} {
			for _, kind := range []string{"new", "replay"} {
				b.Run(fmt.Sprintf("delay=%v/callers=%d/%s", delay, callers, kind), func(b *testing.B) {
					redisCompareCallers(b, server, addr, callers, kind == "replay")
				})
			}
		}
	}
}

// redisTurn is what was measured in a turn.
type redisTurn struct {
	perSecond, cpu, stored float64 // requests, and the µs of this process and of the server for each
}

func redisCompareCallers(b *testing.B, server *servers.RedisServer, addr string, callers int, replays bool) {
	ways := []struct {
		request func()
		turns   []redisTurn
	}{
		{request: redisRequests(b, addr, callers, replays, repriseredis.Config{})},
		{request: redisRequests(b, addr, callers, replays, repriseredis.Config{NoCombining: true})},
	}
	for range 2 { // connections, scripts and caches
		for i := range ways {
			redisMeasureTurn(b, server, callers, ways[i].request)
		}
	}
	b.ResetTimer()
	for b.Loop() {
		for _, i := range rand.Perm(len(ways)) {
			ways[i].turns = append(ways[i].turns, redisMeasureTurn(b, server, callers, ways[i].request))
		}
	}
	ratio := func(of func(redisTurn) float64) float64 {
		var all []float64
		for i := range ways[0].turns {
			all = append(all, of(ways[0].turns[i])/of(ways[1].turns[i]))
		}
		slices.Sort(all)
		return all[len(all)/2]
	}
	perSecond := func(t redisTurn) float64 { return t.perSecond }
	b.ReportMetric(ratio(perSecond), "x-client")
	b.ReportMetric(ratio(func(t redisTurn) float64 { return t.cpu }), "x-cpu")
	b.ReportMetric(ratio(func(t redisTurn) float64 { return t.stored }), "x-server-cpu")
	last := ways[0].turns[len(ways[0].turns)-1]
	b.ReportMetric(last.perSecond, "requests/s")
	b.ReportMetric(last.cpu, "µs-cpu/request")
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
		r := redisClaim()
		granted, err := st.Claim(ctx, r)
		redisWant(b, "claim", err, nil)
		redisWant(b, "complete", st.Complete(ctx, redisCompletion(r, granted, string(redisBody))), nil)
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
		redisWant(b, "replay", err, nil)
	}
}

// redisBody is a response with a body of 256 bytes.
var redisBody = make([]byte, 256+51)

func redisMeasureTurn(b *testing.B, server *servers.RedisServer, callers int, request func()) redisTurn {
	b.Helper()
	const lasts = 200 * time.Millisecond
	self := func() time.Duration {
		u, err := servers.UsageOf(os.Getpid())
		redisWant(b, "usage", err, nil)
		return u[os.Getpid()]
	}
	var made atomic.Int64
	var calling sync.WaitGroup
	used, stored := self(), server.Usage(b)
	start := time.Now() // the reading before may take long
	for range callers {
		calling.Go(func() {
			for more := true; more; more = time.Since(start) < lasts {
				request()
				made.Add(1)
			}
		})
	}
	calling.Wait()
	n, took := float64(made.Load()), time.Since(start)
	return redisTurn{
		perSecond: n / took.Seconds(),
		cpu:       float64((self() - used).Microseconds()) / n,
		stored:    float64(server.Usage(b).Since(stored).Microseconds()) / n,
	}
}
