package redis

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"

	"github.com/redis/go-redis/v9"
	"github.com/reprise-go/reprise/servers"
	repriseredis "github.com/reprise-go/reprise/store/redis"
)

// tries is how often a frozen replica must not be taken to have confirmed a write.
const tries = 40

// While a replica is frozen, every claim, and every claim repeated by its owner, is
// refused. The repetition goes through a client that has not written: servers from 7.2 on
// confirm only writes of the same connection, so on them a repetition that does not write
// is confirmed at once.
func TestRedisAFrozenReplicaConfirmsNothing(t *testing.T) {
	t.Parallel()
	forEachFlavor(t, redisFrozen)
}

func redisFrozen(t *testing.T, flavor *servers.Flavor) {
	t.Helper()
	pair := flavor.StartReplicated(t, 1)
	replica := pair.Replicas[0]
	connect := func() *redis.Client { return labtest.RedisClient(t, pair.Primary.Addr()) }
	config := repriseredis.Config{Prefix: labtest.RedisPrefix(), Durability: repriseredis.Acked(1), AckTimeout: 50 * time.Millisecond}
	st, again := labtest.RedisStore(t, connect(), config), labtest.RedisStore(t, connect(), config)

	before := labtest.NewClaim()
	labtest.Eventually(t, "the replica confirms", func() bool {
		_, err := st.Claim(t.Context(), before)
		return err == nil
	})

	replica.Pause(t)
	var confirmed, repeated atomic.Int64
	var trying sync.WaitGroup
	for range tries {
		r := labtest.NewClaim()
		trying.Go(func() {
			redisTry(t, st, r, &confirmed)
			redisTry(t, again, r, &repeated)
		})
	}
	trying.Wait()
	t.Logf("%d claims: %d confirmed by a frozen replica; repeated by their owners: %d", tries, confirmed.Load(), repeated.Load())
	if confirmed.Load()+repeated.Load() > 0 {
		t.Error("a frozen replica confirmed a claim")
	}

	renewal := []store.RenewRequest{{ID: before.ID, Owner: before.Owner, Lease: before.Lease}}
	_, err := st.Renew(t.Context(), renewal)
	labtest.Want(t, "renew", err, store.ErrNotReplicated)
	labtest.Want(t, "complete", redisComplete(t, st, before, "answer"), store.ErrNotReplicated)
	labtest.Want(t, "complete again", redisComplete(t, st, before, "answer"), store.ErrNotReplicated)
	replica.Resume(t)
	labtest.Eventually(t, "the completion is confirmed", func() bool {
		return redisComplete(t, st, before, "answer") == nil
	})
	after := labtest.NewClaim() // each may miss the short AckTimeout on a busy machine
	labtest.Eventually(t, "a claim is confirmed", func() bool {
		got, err := st.Claim(t.Context(), after)
		return err == nil && got.Outcome == store.Claimed
	})
	labtest.Eventually(t, "its completion is confirmed", func() bool {
		return redisComplete(t, st, after, "answer") == nil
	})
}

// redisTry claims, demands one of the two results that there may be, and counts the wrong
// one.
func redisTry(t *testing.T, st store.Store, r store.ClaimRequest, confirmed *atomic.Int64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	switch _, err := st.Claim(ctx, r); {
	case err == nil:
		confirmed.Add(1)
	case !errors.Is(err, store.ErrNotReplicated):
		t.Errorf("claim: %v, want ErrNotReplicated", err)
	}
}

func TestRedisFsyncedNeedsWaitAOF(t *testing.T) {
	t.Parallel()
	forEachFlavor(t, func(t *testing.T, flavor *servers.Flavor) {
		server := flavor.Start(t, "appendonly=yes", "appendfsync=always")
		st := labtest.RedisStore(t, labtest.RedisClient(t, server.Addr()), repriseredis.Config{Durability: repriseredis.Fsynced(0)})
		if !server.Version().AtLeast(7, 2) {
			_, err := st.Claim(t.Context(), labtest.NewClaim())
			labtest.Want(t, "claim on a server without WAITAOF", err, store.ErrNotReplicated)
			t.Skipf("the server is %v: that Fsynced confirms is shown on 7.2 or newer", server.Version())
		}
		r := labtest.Claimed(t, st)
		labtest.Want(t, "complete", redisComplete(t, st, r, "answer"), nil)
		labtest.Want(t, "switch the file off", labtest.RedisClient(t, server.Addr()).ConfigSet(t.Context(), "appendonly", "no").Err(), nil)
		_, err := st.Claim(t.Context(), labtest.NewClaim())
		labtest.Want(t, "claim without a file", err, store.ErrNotReplicated)
	})
}
