package redis

import (
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"

	"github.com/reprise-go/reprise/servers"
	repriseredis "github.com/reprise-go/reprise/store/redis"
)

// redisLosses are the ways to lose a request or its reply.
var redisLosses = []struct {
	name   string
	action servers.Action
}{
	{"lost request", servers.LoseRequest},
	{"lost reply", servers.LoseReply},
	{"cut", servers.CutAfter},
}

// A request or reply is lost once, and the owner gets the result that it would have got:
// its claim does not conflict with its own repetition, and its completion is recorded.
func TestRedisOneLossChangesNoResult(t *testing.T) {
	t.Parallel()
	single := servers.Redis.Shared(t)
	pair := servers.Redis.StartReplicated(t, 1)
	for _, loss := range redisLosses {
		t.Run(loss.name+"/"+repriseredis.Async().String(), func(t *testing.T) {
			t.Parallel()
			redisLose(t, single, repriseredis.Async(), loss.action)
		})
		t.Run(loss.name+"/"+repriseredis.Acked(1).String(), func(t *testing.T) {
			t.Parallel()
			redisLose(t, pair.Primary, repriseredis.Acked(1), loss.action)
		})
	}
}

func redisLose(t *testing.T, server *servers.RedisServer, level repriseredis.Durability, action servers.Action) {
	t.Helper()
	proxy := servers.StartProxy(t, server.Addr())
	config := repriseredis.Config{Prefix: labtest.RedisPrefix(), Durability: level}
	st := labtest.RedisStore(t, labtest.RedisClient(t, proxy.Addr()), config)
	witness := labtest.RedisStore(t, labtest.RedisClient(t, server.Addr()), config)
	warm := labtest.Claimed(t, st) // the scripts
	labtest.Want(t, "release", st.Release(t.Context(), warm.ID, warm.Owner), nil)

	r := labtest.NewClaim()
	lost := proxy.On("pexpiretime", action)
	if got := labtest.WantClaim(t, st, r, store.Claimed); got.Attempt != 1 {
		t.Errorf("claim is attempt %d, want 1", got.Attempt)
	}
	redisLost(t, "claim", lost)

	lost = proxy.On("eval", action)
	statuses, err := st.Renew(t.Context(), []store.RenewRequest{{ID: r.ID, Owner: r.Owner, Lease: r.Lease}})
	if err != nil || statuses[0] != store.Renewed {
		t.Errorf("renew: %v, %v; want renewed", statuses, err)
	}
	redisLost(t, "renew", lost)

	lost = proxy.On("eval", action)
	labtest.Want(t, "complete", redisComplete(t, st, r, "answer"), nil)
	redisLost(t, "complete", lost)
	if got := labtest.WantClaim(t, witness, r, store.Completed); string(got.Payload) != "answer" {
		t.Errorf("replayed %q, want the answer", got.Payload)
	}

	released := labtest.Claimed(t, st)
	lost = proxy.On("eval", action)
	labtest.Want(t, "release", st.Release(t.Context(), released.ID, released.Owner), nil)
	redisLost(t, "release", lost)
	released.Owner = store.NewOwner()
	labtest.WantClaim(t, witness, released, store.Claimed)
}

// redisLost fails the test unless the loss happened.
func redisLost(t *testing.T, what string, lost <-chan struct{}) {
	t.Helper()
	select {
	case <-lost:
	case <-time.After(time.Minute):
		t.Fatalf("nothing was lost in %s", what)
	}
}

// A link that keeps losing bytes costs time and results, and never lets two owners run, a
// response change, or a caller believe that it failed to claim an ID that it holds.
func TestRedisAFaultyLinkLosesNoGuarantee(t *testing.T) {
	t.Parallel()
	t.Run("a store each", func(t *testing.T) {
		t.Parallel()
		redisDisturb(t, 8, 50, false)
	})
	t.Run("one store that combines", func(t *testing.T) { // and so a fault concerns the commands of many
		t.Parallel()
		redisDisturb(t, 48, 12, true)
	})
}

// redisDisturb lets workers run operations over a link with faults, over one store or
// each over its own.
func redisDisturb(t *testing.T, workers, rounds int, shared bool) {
	t.Helper()
	server := servers.Redis.Shared(t)
	proxy := servers.StartProxy(t, server.Addr())
	config := repriseredis.Config{Prefix: labtest.RedisPrefix()}
	witness := labtest.RedisStore(t, labtest.RedisClient(t, server.Addr()), config)
	sent := new(redisSent)
	client := labtest.RedisClient(t, proxy.Addr())
	client.AddHook(sent)
	common := labtest.RedisStore(t, client, config)
	var claimed, unknown, unavailable, faults atomic.Int64

	done := make(chan struct{})
	var running, disturbing sync.WaitGroup
	disturbing.Go(func() {
		for {
			action := redisLosses[rand.N(len(redisLosses))].action
			select {
			case <-proxy.On("eval", servers.Pass, servers.Pass, action):
				faults.Add(1)
			case <-done:
				return
			}
		}
	})
	for range workers {
		running.Go(func() {
			st := common
			if !shared {
				st = labtest.RedisStore(t, labtest.RedisClient(t, proxy.Addr()), config)
			}
			for range rounds {
				r := labtest.NewClaim()
				switch _, err := st.Claim(t.Context(), r); {
				case errors.Is(err, store.ErrUnknown):
					unknown.Add(1) // the engine releases it; here the witness proves that this owner still gets in
				case errors.Is(err, store.ErrUnavailable):
					unavailable.Add(1)
					probe := r
					probe.Owner = store.NewOwner()
					if got, err := witness.Claim(t.Context(), probe); err != nil || got.Outcome != store.Claimed {
						t.Errorf("a claim that was not executed left %v, %v", got.Outcome, err)
					}
					continue
				case err != nil:
					t.Errorf("claim: %v", err)
					continue
				}
				claimed.Add(1)
				if got, err := witness.Claim(t.Context(), r); err != nil || got.Outcome != store.Claimed || got.Attempt != 1 {
					t.Errorf("the owner claims again: %+v, %v", got, err)
				}
				for redisComplete(t, st, r, "answer") != nil && !t.Failed() {
					unknown.Add(1)
				}
				if got, err := witness.Claim(t.Context(), r); err != nil || got.Outcome != store.Completed || string(got.Payload) != "answer" {
					t.Errorf("replay: %+v, %v", got, err)
				}
			}
		})
	}
	running.Wait()
	close(done)
	disturbing.Wait()
	t.Logf("%d operations, %d faults, %d answers unknown, %d not executed", claimed.Load(), faults.Load(), unknown.Load(), unavailable.Load())
	if faults.Load() == 0 {
		t.Error("nothing went wrong, so nothing was shown")
	}
	if shared && sent.together.Load() == 0 {
		t.Error("no two commands travelled together, so nothing was shown")
	}
}
