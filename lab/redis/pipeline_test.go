package redis

import (
	"context"
	"errors"
	"fmt"
	"net"
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

// redisClients returns the connections that a server has, as CLIENT LIST describes them.
func redisClients(t *testing.T, client *redis.Client) []string {
	t.Helper()
	list, err := client.ClientList(t.Context()).Result()
	redisWant(t, "client list", err, nil)
	return strings.Split(strings.TrimSpace(list), "\n")
}

// A connection of a pipeline has the client's options: user, database, name and version
// of the protocol.
func TestRedisAPipelineConnectsAsItsClient(t *testing.T) {
	t.Parallel()
	server := servers.Redis.Start(t)
	admin := labtest.RedisClient(t, server.Addr())
	redisWant(t, "user", admin.Do(t.Context(), "acl", "setuser", "app", "on", ">secret", "~*", "&*", "+@all").Err(), nil)
	for _, protocol := range []int{2, 3} {
		client := redis.NewClient(&redis.Options{
			Addr: server.Addr(), PoolSize: 1, DB: 3, ClientName: fmt.Sprintf("pipe%d", protocol), Protocol: protocol, ContextTimeoutEnabled: true,
			CredentialsProvider: func() (string, string) { return "app", "secret" },
		})
		t.Cleanup(func() { _ = client.Close() })
		st := redisPipelinedBy(t, client, repriseredis.Config{})
		r := redisClaim()
		redisMustClaim(t, st, r, store.Claimed)
		redisWant(t, "complete", redisComplete(t, st, r, "answer"), nil)
		redisMustClaim(t, st, r, store.Completed)
		n := 0
		for _, line := range redisClients(t, admin) {
			if strings.Contains(line, fmt.Sprintf(" name=pipe%d ", protocol)) {
				n++
				if !strings.Contains(line, " db=3 ") || !strings.Contains(line, " user=app ") || !strings.Contains(line, fmt.Sprintf(" resp=%d", protocol)) {
					t.Errorf("a connection is %s", line)
				}
			}
		}
		if n < 2 {
			t.Errorf("%d connections, want one of the client and one of the pipeline", n)
		}
		redisWant(t, "close", st.Close(), nil)
		redisMustClaim(t, st, r, store.Completed) // through the client
	}
}

// A server that refuses the password of a connection leaves it to the default user. No
// call is sent on it.
func TestRedisAPipelineWithoutAPasswordSendsNothing(t *testing.T) {
	t.Parallel()
	server := servers.Redis.Start(t)
	admin := labtest.RedisClient(t, server.Addr())
	redisWant(t, "user", admin.Do(t.Context(), "acl", "setuser", "app", "on", ">secret", "~*", "&*", "+@all").Err(), nil)
	var asked, pipelined atomic.Int64
	client := redis.NewClient(&redis.Options{
		Addr: server.Addr(), PoolSize: 1, ContextTimeoutEnabled: true,
		CredentialsProvider: func() (string, string) {
			if asked.Add(1) == 1 {
				return "app", "secret"
			}
			return "app", "wrong"
		},
	})
	t.Cleanup(func() { _ = client.Close() })
	st := labtest.RedisStore(t, client, repriseredis.Config{Hook: func(context.Context, repriseredis.Pipelined) { pipelined.Add(1) }})
	redisEventually(t, "the pipeline tried to connect several times", func() bool {
		redisMustClaim(t, st, redisClaim(), store.Claimed)
		return asked.Load() > 3
	})
	if n := pipelined.Load(); n > 0 {
		t.Errorf("%d calls were sent without a password", n)
	}
}

// Connections break while a batch is on its way: its calls are repeated by the client,
// and the pipeline connects again.
func TestRedisAPipelineThatIsCutLosesNoCall(t *testing.T) {
	t.Parallel()
	var pipelined atomic.Int64
	st, proxy := redisPipelined(t, repriseredis.Config{Hook: func(_ context.Context, p repriseredis.Pipelined) {
		if p.Err == nil {
			pipelined.Add(1)
		}
	}})
	for range 5 {
		proxy.Set(t, servers.Stall)
		var claiming sync.WaitGroup
		for range 32 {
			claiming.Go(func() { redisMustClaim(t, st, redisClaim(), store.Claimed) })
		}
		time.Sleep(5 * time.Millisecond) //nolint:forbidigo // some are written, some are not: any of it is right
		proxy.Cut()
		proxy.Set(t, servers.Forward)
		claiming.Wait()
		before := pipelined.Load()
		redisEventually(t, "the pipeline is connected again", func() bool {
			redisMustClaim(t, st, redisClaim(), store.Claimed)
			return pipelined.Load() > before
		})
	}
}

// The server does not reply, and the connection stays open: every call is unknown when
// the read timeout of the client has passed, even if its context allows more.
func TestRedisAHalfOpenPipelineIsUnknownInTime(t *testing.T) {
	t.Parallel()
	const timeout = 300 * time.Millisecond
	proxy := servers.StartProxy(t, servers.Redis.Shared(t).Addr())
	client := redis.NewClient(&redis.Options{Addr: proxy.Addr(), PoolSize: 1, ReadTimeout: timeout, ContextTimeoutEnabled: true})
	t.Cleanup(func() { _ = client.Close() })
	st := redisPipelinedBy(t, client, repriseredis.Config{})
	proxy.Set(t, servers.Swallow)
	var claiming sync.WaitGroup
	for range 32 {
		claiming.Go(func() {
			if _, err := st.Claim(context.WithoutCancel(t.Context()), redisClaim()); !errors.Is(err, store.ErrUnknown) {
				t.Errorf("%v, want ErrUnknown", err)
			}
		})
	}
	claiming.Wait()
	proxy.Set(t, servers.Forward)
	proxy.Cut()
	redisEventually(t, "calls succeed again", func() bool {
		_, err := st.Claim(t.Context(), redisClaim())
		return err == nil
	})
}

// A server that stops reading makes writes wait. Every caller still returns when its
// context ends, and a command that was not written by then is not sent.
func TestRedisSlowReaderHoldsNoCallPastItsContext(t *testing.T) {
	t.Parallel()
	server := servers.Redis.Start(t)
	client := redis.NewClient(&redis.Options{Addr: server.Addr(), PoolSize: 1, ReadTimeout: 20 * time.Second, ContextTimeoutEnabled: true})
	t.Cleanup(func() { _ = client.Close() })
	st := redisPipelinedBy(t, client, repriseredis.Config{})
	r := redisClaim()
	redisMustClaim(t, st, r, store.Claimed)
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
	redisMustClaim(t, st, r, store.Completed)
}

// A server refuses one command of a batch, and answers the others.
func TestRedisAnErrorConcernsItsCommandOnly(t *testing.T) {
	t.Parallel()
	prefix := labtest.RedisPrefix()
	var together atomic.Int64
	st, proxy := redisPipelined(t, repriseredis.Config{Prefix: prefix, Hook: func(_ context.Context, p repriseredis.Pipelined) {
		if p.Batch > 1 {
			together.Add(1)
		}
	}})
	direct := labtest.RedisClient(t, servers.Redis.Shared(t).Addr())
	wrong := redisClaim()
	redisWant(t, "a list", direct.RPush(t.Context(), labtest.RedisKey(prefix, wrong.ID), "x").Err(), nil)
	t.Cleanup(func() { direct.Del(context.WithoutCancel(t.Context()), labtest.RedisKey(prefix, wrong.ID)) })
	proxy.Set(t, servers.Stall)
	var claiming sync.WaitGroup
	for i := range 64 {
		claiming.Go(func() {
			if i%8 != 3 {
				redisMustClaim(t, st, redisClaim(), store.Claimed)
			} else if _, err := st.Claim(context.WithoutCancel(t.Context()), wrong); !errors.Is(err, store.ErrCorrupt) {
				t.Errorf("a claim of a list: %v, want ErrCorrupt", err)
			}
		})
	}
	proxy.Set(t, servers.Forward)
	claiming.Wait()
	if together.Load() == 0 {
		t.Error("no two calls shared a write, so nothing was shown")
	}
}

// A hook that panics does so in the goroutine of its call, and nowhere else.
func TestRedisAPanicOfAHookConcernsItsCallOnly(t *testing.T) {
	t.Parallel()
	var armed atomic.Bool
	st, _ := redisPipelined(t, repriseredis.Config{Hook: func(context.Context, repriseredis.Pipelined) {
		if armed.CompareAndSwap(true, false) {
			panic("hook")
		}
	}})
	var claiming sync.WaitGroup
	var panics atomic.Int64
	for round := range 20 {
		armed.Store(true)
		for range 16 {
			claiming.Go(func() {
				defer func() {
					if recover() != nil {
						panics.Add(1)
					}
				}()
				redisMustClaim(t, st, redisClaim(), store.Claimed)
			})
		}
		claiming.Wait()
		if n := panics.Load(); n < int64(round) || n > int64(round)+1 { // one call a second goes through the client
			t.Fatalf("%d panics after %d rounds", n, round+1)
		}
	}
}

// A context ends before a call is sent, while it is on its way, and after it.
func TestRedisAContextEndsAtEveryStage(t *testing.T) {
	t.Parallel()
	st, proxy := redisPipelined(t, repriseredis.Config{})
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	r := redisClaim()
	_, err := st.Claim(ended, r)
	redisWant(t, "before", err, store.ErrUnavailable)

	proxy.Set(t, servers.Stall)
	before := proxy.Counts().Held
	ctx, cancel := context.WithCancel(t.Context())
	returned := make(chan error)
	go func() { _, err := st.Claim(ctx, r); returned <- err }()
	redisEventually(t, "it is on its way", func() bool { return proxy.Counts().Held > before })
	cancel()
	redisWant(t, "on its way", <-returned, store.ErrUnknown)
	other := redisClaim()
	claimed := make(chan struct{})
	go func() { redisMustClaim(t, st, other, store.Claimed); close(claimed) }()
	proxy.Set(t, servers.Forward)
	<-claimed // with its own result, although another's came first
	if got := redisMustClaim(t, st, r, store.Claimed); got.Attempt != 1 {
		t.Errorf("the owner claims again: %+v", got)
	}
}

// A connection that is not used is closed, and so are those of a store that is closed.
func TestRedisAnIdlePipelineIsClosed(t *testing.T) {
	t.Parallel()
	proxy := servers.StartProxy(t, servers.Redis.Shared(t).Addr())
	client := redis.NewClient(redisOnePool(&redis.Options{
		Addr: proxy.Addr(), PoolSize: 1, ContextTimeoutEnabled: true,
		ConnMaxIdleTime: 200 * time.Millisecond, ReadTimeout: 200 * time.Millisecond,
	}))
	t.Cleanup(func() { _ = client.Close() })
	st := redisPipelinedBy(t, client, repriseredis.Config{})
	redisEventually(t, "only the client has connections", func() bool {
		return proxy.Counts().Open <= int(client.PoolStats().TotalConns)
	})
	redisMustClaim(t, st, redisClaim(), store.Claimed)

	st = redisPipelinedBy(t, client, repriseredis.Config{})
	redisWant(t, "close", st.Close(), nil)
	redisEventually(t, "only the client has connections", func() bool {
		return proxy.Counts().Open <= int(client.PoolStats().TotalConns)
	})
}

// The client is closed under a store that is still used: the store notices, and keeps no
// connection.
func TestRedisAPipelineEndsWithItsClient(t *testing.T) {
	t.Parallel()
	proxy := servers.StartProxy(t, servers.Redis.Shared(t).Addr())
	client := redisSmallClient(t, proxy.Addr())
	st := redisPipelinedBy(t, client, repriseredis.Config{})
	_ = client.Close()
	redisEventually(t, "the store is closed", func() bool {
		_, err := st.Claim(t.Context(), redisClaim())
		return errors.Is(err, store.ErrClosed)
	})
	redisEventually(t, "its connection is closed", func() bool { return proxy.Counts().Open == 0 })
}

// Behind sentinels every call goes through the client, which leaves a primary that was
// replaced: there is no connection to the primary beside those of its pool.
func TestRedisSentinelClientsHaveNoPipeline(t *testing.T) {
	t.Parallel()
	watched := servers.Redis.StartSentinel(t)
	primary := watched.Primary(t).Addr()
	const callers = 16
	var dialled atomic.Int64
	client := redis.NewFailoverClient(redisOnePool(&redis.FailoverOptions{
		MasterName: watched.MasterName, SentinelAddrs: watched.SentinelAddrs(), ContextTimeoutEnabled: true, PoolSize: callers,
		Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
			if addr == primary {
				dialled.Add(1)
			}
			return new(net.Dialer).DialContext(ctx, network, addr)
		},
	}))
	t.Cleanup(func() { _ = client.Close() })
	st := labtest.RedisStore(t, client, repriseredis.Config{Hook: func(_ context.Context, p repriseredis.Pipelined) {
		t.Errorf("a call bypassed the client: %+v", p)
	}})
	var calling sync.WaitGroup
	for until := time.Now().Add(2500 * time.Millisecond); time.Now().Before(until); calling.Wait() {
		for range callers {
			calling.Go(func() { redisRunOnce(t, st) })
		}
	}
	if n := dialled.Load(); n > callers {
		t.Errorf("%d connections to the primary were dialled, the client's pool has %d", n, callers)
	}
}

// Slots move while many callers use the pipelines of a cluster.
func TestRedisAClusterMovesUnderItsPipelines(t *testing.T) {
	t.Parallel()
	cluster := servers.Redis.StartCluster(t)
	prefix := labtest.RedisPrefix()
	var pipelined atomic.Int64
	client := labtest.RedisCluster(t, &redis.ClusterOptions{Addrs: cluster.Addrs(), PoolSize: 1})
	store := redisPipelinedBy(t, client, repriseredis.Config{Prefix: prefix, Hook: func(context.Context, repriseredis.Pipelined) { pipelined.Add(1) }})
	pipelined.Store(0)
	done := make(chan struct{})
	var running sync.WaitGroup
	var operations atomic.Int64
	for range 8 {
		running.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					redisRunOnce(t, store)
					operations.Add(1)
				}
			}
		})
	}
	for range 3 {
		redisMoveSlot(t, cluster, repriseredis.Async())
	}
	close(done)
	running.Wait()
	t.Logf("%d operations, %d calls pipelined", operations.Load(), pipelined.Load())
	if operations.Load() == 0 || pipelined.Load() < operations.Load() {
		t.Errorf("%d operations had %d calls pipelined", operations.Load(), pipelined.Load())
	}
}
