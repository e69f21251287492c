package redis

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"

	"github.com/reprise-go/reprise/servers"
	repriseredis "github.com/reprise-go/reprise/store/redis"
)

// redisPromotions is how many failovers are tried; more in a soak.
const redisPromotions = 10

// A primary dies under load and its replica takes over. Every claim that the replica
// acknowledged is there.
func TestRedisAnAckedClaimSurvivesPromotion(t *testing.T) {
	t.Parallel()
	rounds := 0
	for until := time.Now().Add(labtest.Soak(t)); rounds < redisPromotions || time.Now().Before(until); rounds++ {
		if granted, lost := redisPromotion(t); lost > 0 {
			t.Errorf("%d of %d acknowledged claims are lost, and would run twice", lost, granted)
		}
	}
}

// redisPromotion claims until the primary is dead, and returns how many claims were
// granted and how many of them its successor lacks. Before it dies, the primary is cut
// off from the replica, so that the replica lacks its last claims.
func redisPromotion(t *testing.T) (granted, lost int) {
	t.Helper()
	pair := servers.Redis.StartReplicated(t, 1)
	config := repriseredis.Config{Durability: repriseredis.Acked(1), AckTimeout: 20 * time.Millisecond}
	before := labtest.RedisStore(t, labtest.RedisClient(t, pair.Primary.Addr()), config)
	ctx, stop := context.WithCancel(t.Context())
	var mu sync.Mutex
	var claims []store.ClaimRequest
	var claiming sync.WaitGroup
	for range 4 {
		claiming.Go(func() {
			for ctx.Err() == nil {
				r := labtest.NewClaim()
				if _, err := before.Claim(ctx, r); err == nil {
					mu.Lock()
					claims = append(claims, r)
					mu.Unlock()
				}
			}
		})
	}
	labtest.Eventually(t, "claims are granted", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(claims) >= 100
	})
	pair.Links[0].Set(t, servers.Refuse)
	pair.Links[0].Cut()
	pair.Promote(t, pair.Replicas[0])
	pair.Primary.Kill(t)
	stop()
	claiming.Wait()

	after := labtest.RedisStore(t, labtest.RedisClient(t, pair.Replicas[0].Addr()), repriseredis.Config{})
	for _, r := range claims {
		r.Owner = store.NewOwner()
		got, err := after.Claim(t.Context(), r)
		labtest.Want(t, "claim after the promotion", err, nil)
		if got.Outcome != store.InProgress {
			lost++
		}
	}
	pair.Replicas[0].Kill(t) // so that a soak does not collect servers
	return len(claims), lost
}

// In a cluster an attempt begun before a failover ends after it, and the attempts of the
// other nodes do not wait for the successor of the dead one.
func TestRedisAnAttemptOutlivesAClusterFailover(t *testing.T) {
	t.Parallel()
	cluster := servers.Redis.StartCluster(t)
	client := redisClusterClient(t, cluster)
	const attempts = 60
	config := repriseredis.Config{Prefix: labtest.RedisPrefix()}
	st := labtest.RedisStore(t, client, config)
	config.Durability = repriseredis.Acked(1)
	acked := labtest.RedisStore(t, client, config)
	claims := make([]store.ClaimRequest, attempts)
	batch := make([]store.RenewRequest, attempts)
	for i := range claims {
		claims[i] = labtest.NewClaim()
		labtest.WantClaim(t, acked, claims[i], store.Claimed)
		batch[i] = store.RenewRequest{ID: claims[i].ID, Owner: claims[i].Owner, Lease: time.Minute}
	}
	cluster.Nodes[0].Kill(t)
	meanwhile := 0
	labtest.Eventually(t, "all attempts are renewed", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		statuses, err := st.Renew(ctx, batch)
		if err != nil && !errors.Is(err, store.ErrUnavailable) && !errors.Is(err, store.ErrUnknown) {
			t.Fatalf("renew: %v", err)
		}
		renewed := 0
		for _, s := range statuses {
			if s == store.Renewed {
				renewed++
			} else if s != store.RenewBusy {
				t.Fatalf("renew answered %v for an acknowledged claim", s)
			}
		}
		if renewed < attempts {
			meanwhile = max(meanwhile, renewed)
		}
		return renewed == attempts
	})
	if meanwhile == 0 {
		t.Error("a node that is away kept the leases of the others from being renewed")
	}
	for _, r := range claims {
		labtest.Want(t, "complete", redisComplete(t, st, r, "answer"), nil)
		r.Owner = store.NewOwner()
		labtest.WantClaim(t, st, r, store.Completed)
	}
}
