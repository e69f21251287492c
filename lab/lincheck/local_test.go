package lincheck

import (
	"testing"

	"github.com/redis/go-redis/v9"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/lab/servers"
	repriselocal "github.com/reprise-go/reprise/local"
	repriseredis "github.com/reprise-go/reprise/store/redis"
)

// cached gives each store of a deployment a cache of its own, as each process has one.
func cached(t *testing.T, d *deployment) *deployment {
	t.Helper()
	d.clock.rounded = true // it counts from when it asked
	for i, store := range d.stores {
		local, err := repriselocal.New(store, repriselocal.Config{})
		if err != nil {
			t.Fatal(err)
		}
		d.stores[i] = local
	}
	return d
}

// TestCachesAreLinearizable: an answer from the memory of one process is one that the
// store would give at that instant.
func TestCachesAreLinearizable(t *testing.T) {
	t.Parallel()
	t.Run("memory", func(t *testing.T) {
		t.Parallel()
		store := memstore.New()
		checked(t, cached(t, &deployment{stores: []reprise.Store{store, store}, clock: memoryClock}), everything...)
	})
	redisOf := func(t *testing.T) *deployment {
		t.Helper()
		server := servers.Redis.Shared(t)
		return redisDeployment(t, repriseredis.Config{}, func() redis.UniversalClient { return labtest.RedisClient(t, server.Addr()) })
	}
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		checked(t, cached(t, redisOf(t)), everything...)
	})
	t.Run("engines", func(t *testing.T) {
		t.Parallel()
		checked(t, engines(t, cached(t, redisOf(t))), everythingEngines...)
	})
}
