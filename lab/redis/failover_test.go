package redis

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"

	"github.com/reprise-go/reprise/servers"
	repriseredis "github.com/reprise-go/reprise/store/redis"
)

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
