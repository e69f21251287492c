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

// A link that keeps losing bytes costs time and results, and never lets two owners run, a
// response change, or a caller believe that it failed to claim an ID that it holds. The
// callers share a store that combines, so a fault concerns the commands of many.
func TestRedisAFaultyLinkLosesNoGuarantee(t *testing.T) {
	t.Parallel()
	const workers, rounds = 48, 12
	losses := []servers.Action{servers.LoseRequest, servers.LoseReply, servers.CutAfter}
	server := servers.Redis.Shared(t)
	proxy := servers.StartProxy(t, server.Addr())
	config := repriseredis.Config{Prefix: labtest.RedisPrefix()}
	witness := labtest.RedisStore(t, labtest.RedisClient(t, server.Addr()), config)
	sent := new(redisSent)
	client := labtest.RedisClient(t, proxy.Addr())
	client.AddHook(sent)
	st := labtest.RedisStore(t, client, config)
	var claimed, unknown, unavailable, faults atomic.Int64

	done := make(chan struct{})
	var running, disturbing sync.WaitGroup
	disturbing.Go(func() {
		for {
			action := losses[rand.N(len(losses))]
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
	if sent.together.Load() == 0 {
		t.Error("no two commands travelled together, so nothing was shown")
	}
}
