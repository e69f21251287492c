package redis

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/reprise-go/reprise/conformance/storetest"
	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"

	"github.com/redis/go-redis/v9"
	"github.com/reprise-go/reprise/servers"
	repriseredis "github.com/reprise-go/reprise/store/redis"
)

func TestRedisStoreOnASingleServer(t *testing.T) {
	t.Parallel()
	forEachFlavor(t, func(t *testing.T, flavor *servers.Flavor) {
		server := flavor.Shared(t)
		storetest.Run(t, redisFixture(repriseredis.Config{}, func(tb testing.TB) redis.UniversalClient {
			return labtest.RedisClient(tb, server.Addr())
		}))
	})
}

func TestRedisStoreOnACluster(t *testing.T) {
	t.Parallel()
	forEachFlavor(t, func(t *testing.T, flavor *servers.Flavor) {
		labtest.Breadth(t, "runs of a suite over a further deployment")
		cluster := flavor.StartCluster(t)
		connect := func(tb testing.TB) redis.UniversalClient { return redisClusterClient(tb, cluster) }
		levels := []repriseredis.Durability{repriseredis.Acked(1)}
		if flavor == servers.Redis { // Valkey differs in how it confirms
			levels = append(levels, repriseredis.Async())
		}
		for _, level := range levels {
			t.Run(level.String(), func(t *testing.T) {
				t.Parallel()
				storetest.Run(t, redisFixture(repriseredis.Config{Durability: level}, connect))
			})
		}
	})
}

// redisFixture makes fixtures with a prefix each, over clients that connect returns.
func redisFixture(c repriseredis.Config, connect func(testing.TB) redis.UniversalClient) func(testing.TB) storetest.Fixture {
	return func(testing.TB) storetest.Fixture {
		c := c
		c.Prefix = labtest.RedisPrefix()
		return storetest.Fixture{
			Open:    func(tb testing.TB) store.Store { return labtest.RedisStore(tb, connect(tb), c) },
			Advance: func(_ testing.TB, d time.Duration) { time.Sleep(d) }, //nolint:forbidigo // the server has its own clock
			Corrupt: func(tb testing.TB, id store.ID, how storetest.Corruption) {
				redisCorrupt(tb, connect(tb), labtest.RedisKey(c.Prefix, id), how)
			},
		}
	}
}

// redisCorrupt damages a record by the layout that
// docs/engineering/adr/0011-redis-records.md writes down: its first byte is sixteen times
// the version and the state.
func redisCorrupt(tb testing.TB, client redis.UniversalClient, key string, how storetest.Corruption) {
	tb.Helper()
	ctx := context.WithoutCancel(tb.Context())
	record, err := client.Get(ctx, key).Bytes()
	labtest.Want(tb, "read the record", err, nil)
	switch how {
	case storetest.UnknownVersion:
		record[0] += 16
	case storetest.UnknownState:
		record[0] = 2*16 + 15
	case storetest.Truncated:
		record = record[:len(record)-1]
	case storetest.WrongType:
		labtest.Want(tb, "delete the record", client.Del(ctx, key).Err(), nil)
		labtest.Want(tb, "put a list there", client.RPush(ctx, key, strings.Repeat("x", 100)).Err(), nil)
		return
	default:
		tb.Skipf("no way to make a record %s", how)
	}
	labtest.Want(tb, "write the record", client.Set(ctx, key, record, redis.KeepTTL).Err(), nil)
}
