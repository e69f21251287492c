package redis

import (
	"testing"
	"time"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/servers"
	repriseredis "github.com/reprise-go/reprise/store/redis"
)

// redisWatch watches a record until the test ends. A busy machine may take longer to
// subscribe than the store waits.
func redisWatch(t *testing.T, st *repriseredis.Store, id store.ID) (changed <-chan struct{}) {
	t.Helper()
	labtest.Eventually(t, "a watch", func() bool {
		var stop func()
		var err error
		if changed, stop, err = st.Watch(t.Context(), id); err == nil {
			t.Cleanup(stop)
		}
		return err == nil
	})
	return changed
}

func redisHears(t *testing.T, what string, changed <-chan struct{}) {
	t.Helper()
	select {
	case <-changed:
	case <-time.After(time.Minute):
		t.Fatalf("the watcher did not hear of the %s", what)
	}
}

// A watcher misses the messages sent while its connection was broken, so it is notified
// to look.
func TestRedisWatchersReadAfterALostConnection(t *testing.T) {
	t.Parallel()
	server := servers.Redis.Shared(t)
	proxy := servers.StartProxy(t, server.Addr())
	config := repriseredis.Config{Prefix: labtest.RedisPrefix()}
	st := labtest.RedisStore(t, labtest.RedisClient(t, proxy.Addr()), config)
	witness := labtest.RedisStore(t, labtest.RedisClient(t, server.Addr()), config)
	r := labtest.Claimed(t, st)
	changed := redisWatch(t, st, r.ID)
	redisWaits(t, witness, r)
	proxy.Cut()
	redisHears(t, "lost connection", changed)
	labtest.Want(t, "complete", redisComplete(t, witness, r, "answer"), nil)
	redisHears(t, "complete", changed)
}
