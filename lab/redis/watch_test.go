package redis

import (
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"

	"github.com/reprise-go/reprise/servers"
	repriseredis "github.com/reprise-go/reprise/store/redis"
)

// redisWatch watches a record, again where a busy machine took longer to subscribe than
// the store waits.
func redisWatch(tb testing.TB, st *repriseredis.Store, id store.ID) (changed <-chan struct{}, stop func()) {
	tb.Helper()
	labtest.Eventually(tb, "a watch", func() (granted bool) {
		var err error
		if changed, stop, err = st.Watch(tb.Context(), id); err != nil {
			labtest.Want(tb, "watch", err, store.ErrUnavailable)
		}
		return err == nil
	})
	return changed, stop
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
	changed, stop := redisWatch(t, st, r.ID)
	defer stop()
	redisWaits(t, witness, r)
	proxy.Cut()
	redisHears(t, "lost connection", changed)
	labtest.Want(t, "complete", redisComplete(t, witness, r, "answer"), nil)
	redisHears(t, "complete", changed)
}

// Close ends the work that a watch started; running watches are notified at once. The
// test is not parallel: no other store has a listener while it looks.
func TestRedisCloseEndsEveryWatch(t *testing.T) {
	st := labtest.RedisStore(t, labtest.RedisClient(t, servers.Redis.Shared(t).Addr()), repriseredis.Config{Prefix: labtest.RedisPrefix()})
	changed, stop := redisWatch(t, st, labtest.NewClaim().ID)
	if !redisListens() {
		t.Fatal("no goroutine of a listener is there, so the test shows nothing")
	}
	labtest.Want(t, "close", st.Close(), nil)
	if redisListens() {
		t.Error("a goroutine of the listener is left")
	}
	redisHears(t, "close", changed)
	stop()
	_, _, err := st.Watch(t.Context(), labtest.NewClaim().ID)
	labtest.Want(t, "watch after close", err, store.ErrClosed)
}

// redisListens reports whether a goroutine of any listener runs.
func redisListens() bool {
	stacks := make([]byte, 1<<20)
	return strings.Contains(string(stacks[:runtime.Stack(stacks, true)]), "store/redis.(*listener)")
}
