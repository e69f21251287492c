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

// A server that stops reading makes writes wait. Every caller still returns when its
// context ends, and a call that was not taken by then is not sent.
func TestRedisSlowReaderHoldsNoCallPastItsContext(t *testing.T) {
	t.Parallel()
	for _, ctxTimeouts := range []bool{true, false} {
		server := servers.Redis.Start(t)
		client := redis.NewClient(redisOnePool(&redis.Options{
			Addr: server.Addr(), PoolSize: 1, ReadTimeout: time.Minute, WriteTimeout: time.Minute, ContextTimeoutEnabled: ctxTimeouts,
		}))
		t.Cleanup(func() { _ = client.Close() })
		st := labtest.RedisStore(t, client, repriseredis.Config{})
		r := labtest.Claimed(t, st)
		labtest.Want(t, "complete", redisComplete(t, st, r, "first"), nil) // the script
		server.Pause(t)
		payload := strings.Repeat("x", 60<<10)
		var calling, late sync.WaitGroup
		var unsent, unknown, answered atomic.Int64
		for i := range 256 { // 15 MiB, more than the buffers of the connection
			within, group := 300*time.Millisecond, &late
			if i%2 == 0 {
				within, group = time.Minute, &calling
			}
			group.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), within)
				defer cancel()
				err := st.Complete(ctx, store.CompleteRequest{ID: r.ID, Owner: r.Owner, Payload: []byte(payload), Policy: store.Policy{Retention: r.Retention}})
				switch {
				case err == nil:
					answered.Add(1)
				case errors.Is(err, store.ErrUnavailable), errors.Is(err, store.ErrBusy):
					unsent.Add(1)
				case errors.Is(err, store.ErrUnknown):
					unknown.Add(1)
				default:
					t.Errorf("complete: %v", err)
				}
				if i%2 == 1 && err == nil {
					t.Error("a server that is stopped answered")
				}
			})
		}
		late.Wait()
		server.Resume(t)
		calling.Wait()
		t.Logf("%d answered, %d unknown, %d not sent", answered.Load(), unknown.Load(), unsent.Load())
		if answered.Load() != 128 || unsent.Load() == 0 {
			t.Errorf("%d answered, %d not sent; want the patient 128, and some of the others", answered.Load(), unsent.Load())
		}
		labtest.WantClaim(t, st, r, store.Completed)
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
