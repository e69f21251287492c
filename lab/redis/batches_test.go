package redis

import (
	"context"
	"errors"
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

// redisSent is a client hook that counts calls by whether others were sent with them.
type redisSent struct {
	alone, together atomic.Int64
	panics          atomic.Bool // once, at the next batch
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
		} else if s.together.Add(calls); s.panics.CompareAndSwap(true, false) {
			panic("hook")
		}
		return next(ctx, cmds)
	}
}

// redisSmallClient returns a client with one connection, so that calls that are made at
// the same time share it. It is closed when the test ends.
func redisSmallClient(t *testing.T, addr string) (*redis.Client, *redisSent) {
	t.Helper()
	client := redis.NewClient(redisOnePool(&redis.Options{Addr: addr, PoolSize: 1, ContextTimeoutEnabled: true}))
	t.Cleanup(func() { _ = client.Close() })
	sent := new(redisSent)
	client.AddHook(sent)
	return client, sent
}

// redisBatching returns a store behind a proxy, over a client with one connection.
func redisBatching(t *testing.T, prefix string) (*repriseredis.Store, *servers.Proxy, *redisSent) {
	t.Helper()
	proxy := servers.StartProxy(t, servers.Redis.Shared(t).Addr())
	client, sent := redisSmallClient(t, proxy.Addr())
	st := labtest.RedisStore(t, client, repriseredis.Config{Prefix: prefix})
	redisMustClaim(t, st, redisClaim(), store.Claimed) // connects
	return st, proxy, sent
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

// A few calls at a time are sent alone, and more of them together. The calls of an
// attempt mean the same either way.
func TestRedisFewCallsAreSentAlone(t *testing.T) {
	t.Parallel()
	client := labtest.RedisClient(t, servers.Redis.Shared(t).Addr())
	sent := new(redisSent)
	client.AddHook(sent)
	st := labtest.RedisStore(t, client, repriseredis.Config{Prefix: labtest.RedisPrefix()})
	for range 100 {
		redisClaimTogether(t, st, 4)
	}
	if n := sent.together.Load(); n > 0 {
		t.Errorf("%d calls of four callers were sent together", n)
	}
	var attempts []store.ClaimRequest
	redisEventually(t, "calls of many callers are sent together", func() bool {
		var mu sync.Mutex
		var claiming sync.WaitGroup
		for range 64 {
			claiming.Go(func() {
				r := redisClaim()
				granted := redisMustClaim(t, st, r, store.Claimed)
				redisMustClaim(t, st, redisRival(r), store.InProgress)
				if got := redisMustClaim(t, st, r, store.Claimed); got.Attempt != granted.Attempt || got.Fence != granted.Fence {
					t.Errorf("its owner claims again and gets attempt %d and fence %d, had %d and %d", got.Attempt, got.Fence, granted.Attempt, granted.Fence)
				}
				redisWant(t, "complete", st.Complete(context.WithoutCancel(t.Context()), redisCompletion(r, granted, "answer")), nil)
				redisMustClaim(t, st, redisRival(r), store.Completed)
				mu.Lock()
				defer mu.Unlock()
				attempts = append(attempts, r)
			})
		}
		claiming.Wait()
		return sent.together.Load() > 0
	})
	for _, r := range attempts {
		if got := redisMustClaim(t, st, redisRival(r), store.Completed); string(got.Payload) != "answer" {
			t.Errorf("replayed %q", got.Payload)
		}
	}
}

// Batches use the connections of the client's pool, and no other.
func TestRedisBatchesDialNothing(t *testing.T) {
	t.Parallel()
	watched := servers.Redis.StartSentinel(t)
	primary := watched.Primary(t).Addr()
	const pool, callers = 4, 64
	var dialled atomic.Int64
	client := redis.NewFailoverClient(redisOnePool(&redis.FailoverOptions{
		MasterName: watched.MasterName, SentinelAddrs: watched.SentinelAddrs(), ContextTimeoutEnabled: true, PoolSize: pool,
		Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
			if addr == primary {
				dialled.Add(1)
			}
			return new(net.Dialer).DialContext(ctx, network, addr)
		},
	}))
	t.Cleanup(func() { _ = client.Close() })
	sent := new(redisSent)
	client.AddHook(sent)
	for _, level := range []repriseredis.Durability{repriseredis.Async(), repriseredis.Acked(1)} {
		st := labtest.RedisStore(t, client, repriseredis.Config{Prefix: labtest.RedisPrefix(), Durability: level})
		before := sent.together.Load()
		redisEventually(t, "calls are sent together", func() bool {
			redisClaimTogether(t, st, callers)
			return sent.together.Load() > before
		})
	}
	if n := dialled.Load(); n > pool {
		t.Errorf("%d connections to the primary were dialled, the client's pool has %d", n, pool)
	}
}

// Connections break while batches are on their way: their calls are repeated.
func TestRedisABatchThatIsCutLosesNoCall(t *testing.T) {
	t.Parallel()
	st, proxy, sent := redisBatching(t, labtest.RedisPrefix())
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
	}
	if sent.together.Load() == 0 {
		t.Error("no two calls were sent together, so nothing was shown")
	}
}

// The server does not reply, and the connection stays open: every call is unknown when
// the read timeout of the client has passed, even if its context allows more.
func TestRedisAHalfOpenBatchIsUnknownInTime(t *testing.T) {
	t.Parallel()
	const timeout = 300 * time.Millisecond
	proxy := servers.StartProxy(t, servers.Redis.Shared(t).Addr())
	client := redis.NewClient(redisOnePool(&redis.Options{Addr: proxy.Addr(), PoolSize: 1, ReadTimeout: timeout, ContextTimeoutEnabled: true}))
	t.Cleanup(func() { _ = client.Close() })
	st := labtest.RedisStore(t, client, repriseredis.Config{Prefix: labtest.RedisPrefix()})
	redisMustClaim(t, st, redisClaim(), store.Claimed)
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
		r := redisClaim()
		redisMustClaim(t, st, r, store.Claimed)
		redisWant(t, "complete", redisComplete(t, st, r, "first"), nil) // the script
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
}

// A server refuses one command of a batch, and answers the others.
func TestRedisAnErrorConcernsItsCommandOnly(t *testing.T) {
	t.Parallel()
	prefix := labtest.RedisPrefix()
	st, proxy, sent := redisBatching(t, prefix)
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
	if sent.together.Load() == 0 {
		t.Error("no two calls were sent together, so nothing was shown")
	}
}

// A hook of the client that panics ends the calls of its batch, and no other.
func TestRedisAPanicOfAHookConcernsItsBatchOnly(t *testing.T) {
	t.Parallel()
	st, _, sent := redisBatching(t, labtest.RedisPrefix())
	for range 5 {
		sent.panics.Store(true)
		var unknown atomic.Int64
		redisEventually(t, "a hook panics", func() bool {
			var claiming sync.WaitGroup
			for range 16 {
				claiming.Go(func() {
					switch _, err := st.Claim(t.Context(), redisClaim()); {
					case errors.Is(err, store.ErrUnknown):
						unknown.Add(1)
					case err != nil:
						t.Errorf("claim: %v", err)
					}
				})
			}
			claiming.Wait()
			return !sent.panics.Load()
		})
		if n := unknown.Load(); n < 2 || n > 16 {
			t.Errorf("%d calls ended with the batch whose hook panicked", n)
		}
		redisClaimTogether(t, st, 16)
	}
}

// A context ends before a call is sent, while it waits for a batch, and on its way.
func TestRedisAContextEndsAtEveryStage(t *testing.T) {
	t.Parallel()
	st, proxy, _ := redisBatching(t, labtest.RedisPrefix())
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	r := redisClaim()
	_, err := st.Claim(ended, r)
	redisWant(t, "before", err, store.ErrUnavailable)

	proxy.Set(t, servers.Stall)
	before := proxy.Counts().Held
	returned := make(chan error, 1)
	first, leave := context.WithCancel(t.Context())
	defer leave()
	go func() {
		_, err := st.Claim(first, r)
		returned <- err
	}()
	redisEventually(t, "it is on its way", func() bool { return proxy.Counts().Held > before })
	waits, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err = st.Claim(waits, redisClaim())
	redisWant(t, "in the queue", err, store.ErrBusy)
	leave()
	redisWant(t, "on its way", <-returned, store.ErrUnknown)
	proxy.Set(t, servers.Forward)
	redisMustClaim(t, st, redisClaim(), store.Claimed) // with its own result, although another's was on its way
	if got := redisMustClaim(t, st, r, store.Claimed); got.Attempt != 1 {
		t.Errorf("the owner claims again: %+v", got)
	}
}

// The time of one call runs out in a batch. That must not become the time of the others.
func TestRedisALateCommandFailsAlone(t *testing.T) {
	t.Parallel()
	st, proxy, sent := redisBatching(t, labtest.RedisPrefix())
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
				if _, err := st.Claim(late, redisClaim()); err == nil {
					t.Error("the late one was answered")
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
	if sent.together.Load() == 0 {
		t.Error("no two calls were sent together, so nothing was shown")
	}
}

// Large replays that were asked for in a batch arrive whole.
func TestRedisLargeReplaysInABatchArriveWhole(t *testing.T) {
	t.Parallel()
	st, proxy, sent := redisBatching(t, labtest.RedisPrefix())
	var done []store.ClaimRequest
	answers := []string{strings.Repeat("a", 300_000), strings.Repeat("b", 60_000), strings.Repeat("c", 10_000), "d"}
	for _, answer := range answers {
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
			} else if got := redisMustClaim(t, st, done[i/2%4], store.Completed); string(got.Payload) != answers[i/2%4] {
				t.Errorf("a replay of %d bytes, want %d", len(got.Payload), len(answers[i/2%4]))
			}
		})
	}
	proxy.Set(t, servers.Forward)
	claiming.Wait()
	if sent.together.Load() == 0 {
		t.Error("no two calls were sent together, so nothing was shown")
	}
}

// Slots move while the calls of many callers share batches.
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
