package matrix

import (
	"context"
	"errors"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/reprise-go/reprise/conformance/servers"
	reprise "github.com/reprise-go/reprise/core"
	repriseredis "github.com/reprise-go/reprise/store/redis"
)

// redisPromotions is how many failovers are tried for each level of durability; more in a soak.
const redisPromotions = 10

// A primary dies under load and its replica takes over. Every claim that was acknowledged by the replica is there; what of the
// others is lost is counted, because nothing promises it.
func TestRedisAnAckedClaimSurvivesPromotion(t *testing.T) {
	t.Parallel()
	for _, level := range []repriseredis.Durability{repriseredis.Acked(1), repriseredis.Async()} {
		t.Run(level.String(), func(t *testing.T) {
			t.Parallel()
			var granted, lost, rounds int
			for until := time.Now().Add(redisSoak(t)); rounds < redisPromotions || time.Now().Before(until); rounds++ {
				g, l := redisPromotion(t, level)
				granted, lost = granted+g, lost+l
			}
			t.Logf("%v: %d promotions, %d claims granted, %d lost", level, rounds, granted, lost)
			if granted == 0 {
				t.Error("no claim was granted, so nothing was shown")
			}
			if level != repriseredis.Async() && lost > 0 {
				t.Errorf("%d acknowledged claims are lost, and would run twice", lost)
			}
		})
	}
}

// redisPromotion claims until the primary is dead, and returns how many claims were granted and how many of them its successor
// does not know. Before it dies, the primary is cut off from the replica, so that it grants what the replica does not learn.
func redisPromotion(t *testing.T, level repriseredis.Durability) (granted, lost int) {
	t.Helper()
	pair := servers.Redis.StartReplicated(t, 1)
	config := repriseredis.Config{Durability: level, AckTimeout: 20 * time.Millisecond}
	before := redisStore(t, redisClient(t, pair.Primary.Addr()), config)
	ctx, stop := context.WithCancel(t.Context())
	var mu sync.Mutex
	var claims []reprise.ClaimRequest
	var claiming sync.WaitGroup
	for range 4 {
		claiming.Go(func() {
			for ctx.Err() == nil {
				r := redisClaim()
				if _, err := before.Claim(ctx, r); err == nil {
					mu.Lock()
					claims = append(claims, r)
					mu.Unlock()
				}
			}
		})
	}
	redisEventually(t, "claims are granted", func() bool {
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

	after := redisStore(t, redisClient(t, pair.Replicas[0].Addr()), repriseredis.Config{})
	for _, r := range claims {
		r.Owner = reprise.NewOwner()
		got, err := after.Claim(t.Context(), r)
		redisWant(t, "claim after the promotion", err, nil)
		if got.Outcome != reprise.InProgress {
			lost++
		}
	}
	pair.Replicas[0].Kill(t) // so that a soak does not collect servers
	return len(claims), lost
}

// Sentinel finds the successor, and the client finds it through Sentinel: an attempt begun before the failover ends after it.
func TestRedisAnAttemptOutlivesASentinelFailover(t *testing.T) {
	t.Parallel()
	watched := servers.Redis.StartSentinel(t)
	store := redisStore(t, redisSentinelClient(t, watched), repriseredis.Config{Durability: repriseredis.Acked(2)})
	redisOutlive(t, store, func() { watched.Primary(t).Kill(t) }, func() redis.UniversalClient { return redisSentinelClient(t, watched) })
}

func TestRedisAnAttemptOutlivesAClusterFailover(t *testing.T) {
	t.Parallel()
	cluster := servers.Redis.StartCluster(t)
	store := redisStore(t, redisClusterClient(t, cluster), repriseredis.Config{Durability: repriseredis.Acked(1)})
	redisOutlive(t, store, func() { cluster.Nodes[0].Kill(t) }, func() redis.UniversalClient { return redisClusterClient(t, cluster) })
}

// redisOutlive begins attempts, kills a primary and ends the attempts in another process. The attempts of other nodes are renewed
// while the dead one's wait for its successor.
func redisOutlive(t *testing.T, before *repriseredis.Store, kill func(), connect func() redis.UniversalClient) {
	t.Helper()
	const attempts = 60
	claims := make([]reprise.ClaimRequest, attempts)
	batch := make([]reprise.RenewRequest, attempts)
	for i := range claims {
		claims[i] = redisClaim()
		redisMustClaim(t, before, claims[i], reprise.Claimed)
		batch[i] = reprise.RenewRequest{ID: claims[i].ID, Owner: claims[i].Owner, Lease: time.Minute}
	}
	kill()
	store := redisStore(t, connect(), repriseredis.Config{})
	renewed, sooner, busy := 0, 0, 0
	redisEventually(t, "all attempts are renewed", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		renewed = 0
		statuses, err := store.Renew(ctx, batch)
		if err != nil && !errors.Is(err, reprise.ErrUnavailable) && !errors.Is(err, reprise.ErrUnknown) {
			t.Fatalf("renew: %v", err)
		}
		for _, s := range statuses {
			switch s {
			case reprise.Renewed:
				renewed++
			case reprise.RenewBusy:
				busy++
			default:
				t.Fatalf("renew answered %v for an acknowledged claim", s)
			}
		}
		if renewed < attempts {
			sooner = max(sooner, renewed)
		}
		return renewed == attempts
	})
	t.Logf("%d attempts renewed, %d of them while others had to wait; busy %d times", renewed, sooner, busy)
	for _, r := range claims {
		redisWant(t, "complete", redisComplete(t, store, r, "answer"), nil)
		r.Owner = reprise.NewOwner()
		redisMustClaim(t, store, r, reprise.Completed)
	}
}

// redisSoak is for how long a soak tests, and 0 where nobody asked for one.
func redisSoak(tb testing.TB) time.Duration {
	tb.Helper()
	text := os.Getenv("REPRISE_SOAK")
	if text == "" {
		return 0
	}
	d, err := time.ParseDuration(text)
	redisWant(tb, "REPRISE_SOAK", err, nil)
	return d
}
