package redis

import (
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"

	"github.com/reprise-go/reprise/servers"
	repriseredis "github.com/reprise-go/reprise/store/redis"
)

// redisLosses are the ways to lose a request or its reply.
var redisLosses = []servers.Action{servers.LoseRequest, servers.LoseReply, servers.CutAfter}

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
			action := redisLosses[rand.N(len(redisLosses))]
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
