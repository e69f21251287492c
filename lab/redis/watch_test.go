package redis

import (
	"testing"
	"time"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/servers"
	repriseredis "github.com/reprise-go/reprise/store/redis"
)

// redisWatch watches records until the test ends. A busy machine may take longer to
// subscribe than the store waits: then all are watched again, by another listener.
func redisWatch(t *testing.T, st *repriseredis.Store, claims ...store.ClaimRequest) (hints []<-chan struct{}) {
	t.Helper()
	labtest.Eventually(t, "the watches", func() bool {
		hints = nil
		for _, r := range claims {
			changed, stop, err := st.Watch(t.Context(), r.ID)
			if err != nil {
				return false
			}
			t.Cleanup(stop)
			hints = append(hints, changed)
		}
		return true
	})
	return hints
}

// redisLosesWatches breaks the connections that hear of records. Their watchers miss the
// messages sent meanwhile, so they are notified to look, and hear of later ones.
func redisLosesWatches(t *testing.T, st *repriseredis.Store, nodes ...*servers.RedisServer) {
	t.Helper()
	var claims []store.ClaimRequest
	for range 8 { // of several slots, so that a node of a cluster refuses one command for all
		claims = append(claims, labtest.Claimed(t, st))
	}
	hints := redisWatch(t, st, claims...)
	for _, node := range nodes {
		redisDo(t, node, "CLIENT", "KILL", "TYPE", "pubsub")
	}
	for _, complete := range []bool{false, true} {
		for i, r := range claims {
			if complete {
				redisWaits(t, st, r)
				labtest.Want(t, "complete", redisComplete(t, st, r, "answer"), nil)
			}
			select {
			case <-hints[i]:
			case <-time.After(time.Minute):
				t.Fatalf("the watcher of record %d has no hint; that it was completed: %v", i, complete)
			}
		}
	}
}

func TestRedisWatchersReadAfterALostConnection(t *testing.T) {
	t.Parallel()
	server := servers.Redis.Start(t)
	redisLosesWatches(t, labtest.RedisStore(t, labtest.RedisClient(t, server.Addr()), repriseredis.Config{}), server)
}
