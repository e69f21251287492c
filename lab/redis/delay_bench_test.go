package redis

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/lab/servers"
	repriseredis "github.com/reprise-go/reprise/store/redis"
)

// BenchmarkRedisCombiningByDelay compares a store that combines commands with one that
// does not, on networks from the loopback interface to another continent. It reports the
// medians of shuffled rounds: new keys a second of both, their ratio, and the round trip.
// Combining has to be worth 0.95 of not combining everywhere.
func BenchmarkRedisCombiningByDelay(b *testing.B) {
	server := servers.Redis.Shared(b)
	for _, roundTrip := range []time.Duration{0, time.Millisecond, 3 * time.Millisecond, 8 * time.Millisecond, 30 * time.Millisecond} {
		line := servers.StartDelayLine(b, server.Addr(), roundTrip)
		alone := redisDelayed(b, line, repriseredis.Config{NoCombining: true})
		combined := redisDelayed(b, line, repriseredis.Config{})
		for _, callers := range []int{1, 16, 64, 256} {
			b.Run(fmt.Sprintf("%v/%d", max(roundTrip, 50*time.Microsecond), callers), func(b *testing.B) {
				took := redisRoundTrip(b, line)
				redisCompare(b, callers, took, alone, combined)
				b.ReportMetric(float64(took.Microseconds()), "µs-round-trip")
			})
		}
	}
}

// redisDelayed returns a run of a new key through a network.
func redisDelayed(b *testing.B, line *servers.DelayLine, c repriseredis.Config) func(testing.TB) {
	b.Helper()
	c.Prefix = labtest.RedisPrefix()
	return redisNewKeys(b, labtest.RedisStore(b, labtest.RedisClient(b, line.Addr()), c))
}

// redisRoundTrip returns the median time of a PING.
func redisRoundTrip(b *testing.B, line *servers.DelayLine) time.Duration {
	b.Helper()
	client := labtest.RedisClient(b, line.Addr())
	var took []time.Duration
	for range 21 {
		start := time.Now()
		redisWant(b, "ping", client.Ping(context.WithoutCancel(b.Context())).Err(), nil)
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	return took[len(took)/2]
}

// redisCompare runs both in turns, callers at once, and reports the medians. A round
// lasts ten round trips of a new key at least, and a fifth of a second.
func redisCompare(b *testing.B, callers int, roundTrip time.Duration, alone, combined func(testing.TB)) {
	b.Helper()
	const rounds = 6
	lasts := max(20*roundTrip, 200*time.Millisecond)
	run := func(operation func(testing.TB)) float64 {
		var done atomic.Int64
		var calling sync.WaitGroup
		start := time.Now()
		for range callers {
			calling.Go(func() {
				for time.Since(start) < lasts && !b.Failed() {
					operation(b)
					done.Add(1)
				}
			})
		}
		calling.Wait()
		return float64(done.Load()) / time.Since(start).Seconds()
	}
	run(alone) // opens the connections
	run(combined)
	b.ResetTimer()
	var rates [2][]float64
	for round := range rounds * b.N {
		for i := range 2 {
			which := (i + round) % 2
			rates[which] = append(rates[which], run([]func(testing.TB){alone, combined}[which]))
		}
	}
	median := func(of []float64) float64 {
		slices.Sort(of)
		return of[len(of)/2]
	}
	b.ReportMetric(median(rates[0]), "alone/s")
	b.ReportMetric(median(rates[1]), "combined/s")
	b.ReportMetric(median(rates[1])/median(rates[0]), "×alone")
}
