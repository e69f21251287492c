package redis

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/reprise-go/reprise/lab/internal/labtest"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/lab/servers"
	repriseredis "github.com/reprise-go/reprise/store/redis"
)

// BenchmarkRedisCombining compares, at 1, 8 and 64 callers, bare scripts, a store that
// sends every command by itself, and one that combines them, which is the default
// (targets P2 and P3).
func BenchmarkRedisCombining(b *testing.B) {
	client := labtest.RedisClient(b, servers.Redis.Shared(b).Addr())
	floor := newRedisFloor(b, client)
	kinds := map[string]func(testing.TB, *repriseredis.Store) func(testing.TB){"new-key": redisNewKeys, "replay": redisReplays}
	for _, kind := range []string{"new-key", "replay"} {
		bare := map[string]func(testing.TB){"new-key": floor.newKey, "replay": floor.replay}[kind]
		alone := labtest.RedisStore(b, client, repriseredis.Config{Prefix: labtest.RedisPrefix(), NoCombining: true})
		combined := labtest.RedisStore(b, client, repriseredis.Config{Prefix: labtest.RedisPrefix()})
		for _, callers := range []int{1, 8, 64} {
			for _, m := range []struct {
				name string
				run  func(testing.TB)
			}{{"bare", bare}, {"alone", kinds[kind](b, alone)}, {"combined", kinds[kind](b, combined)}} {
				b.Run(fmt.Sprintf("%s/%d/%s", kind, callers, m.name), func(b *testing.B) {
					var begun atomic.Int64
					var calling sync.WaitGroup
					for range callers { // and not as many as there are processors
						calling.Go(func() {
							for begun.Add(1) <= int64(b.N) {
								m.run(b)
							}
						})
					}
					calling.Wait()
				})
			}
		}
	}
}

// redisNewKeys returns a run of a new key, to its end.
func redisNewKeys(_ testing.TB, store *repriseredis.Store) func(testing.TB) {
	payload := make([]byte, 256)
	return func(tb testing.TB) {
		r := redisClaim()
		ctx := context.WithoutCancel(tb.Context())
		got, err := store.Claim(ctx, r)
		if err == nil {
			err = store.Complete(ctx, reprise.CompleteRequest{ID: r.ID, Owner: r.Owner, Payload: payload, Retention: r.Retention})
		}
		if err != nil || got.Outcome != reprise.Claimed {
			tb.Error(got.Outcome, err)
		}
	}
}

// redisReplays returns a replay.
func redisReplays(tb testing.TB, store *repriseredis.Store) func(testing.TB) {
	tb.Helper()
	r := redisClaim()
	redisMustClaim(tb, store, r, reprise.Claimed)
	redisWant(tb, "complete", redisComplete(tb, store, r, string(make([]byte, 256))), nil)
	return func(tb testing.TB) {
		got, err := store.Claim(context.WithoutCancel(tb.Context()), r)
		if err != nil || got.Outcome != reprise.Completed {
			tb.Error(got.Outcome, err)
		}
	}
}
