package redis

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/servers"
	repriseredis "github.com/reprise-go/reprise/store/redis"
)

// redisSent is a client hook that counts calls by whether others were sent with them.
type redisSent struct {
	alone, together atomic.Int64
}

func (s *redisSent) DialHook(next redis.DialHook) redis.DialHook { return next }

func (s *redisSent) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		s.alone.Add(1)
		return next(ctx, cmd)
	}
}

func (s *redisSent) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		calls := int64(0)
		for _, cmd := range cmds {
			if name := cmd.Name(); name == "set" || strings.HasPrefix(name, "eval") {
				calls++
			}
		}
		if calls < 2 {
			s.alone.Add(calls)
		} else {
			s.together.Add(calls)
		}
		return next(ctx, cmds)
	}
}

// Slots move from one primary to another while clients with the old map use them: ASK for
// keys that moved already, MOVED at the end. Meanwhile the calls of many callers share
// batches.
func TestRedisAClusterMovesUnderItsBatches(t *testing.T) {
	t.Parallel()
	cluster := servers.Redis.StartCluster(t)
	for _, level := range []repriseredis.Durability{repriseredis.Async(), repriseredis.Acked(1)} {
		sent := new(redisSent)
		client := labtest.RedisCluster(t, &redis.ClusterOptions{
			Addrs: cluster.Addrs(), PoolSize: 1,
			NewClient: func(o *redis.Options) *redis.Client {
				node := redis.NewClient(redisOnePool(o))
				node.AddHook(sent)
				return node
			},
		})
		st := labtest.RedisStore(t, client, repriseredis.Config{Prefix: labtest.RedisPrefix(), Durability: level})
		var over atomic.Bool
		var running sync.WaitGroup
		end := sync.OnceFunc(func() { over.Store(true); running.Wait() })
		t.Cleanup(end)
		for range 16 {
			running.Go(func() {
				for !over.Load() && !t.Failed() {
					redisRunOnce(t, st)
				}
			})
		}
		for range 3 {
			redisMoveSlot(t, cluster, level)
		}
		end()
		t.Logf("%v: %d calls together, %d alone", level, sent.together.Load(), sent.alone.Load())
		if sent.together.Load() == 0 {
			t.Error("no two calls were sent together, so nothing was shown")
		}
	}
}
