package frameworks

import (
	"testing"
	"time"

	reprisehttp "github.com/reprise-go/reprise/adapters/nethttp"
	"github.com/reprise-go/reprise/conformance/adaptertest"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/lab/servers"
	repriselocal "github.com/reprise-go/reprise/local"
	repriseredis "github.com/reprise-go/reprise/store/redis"
)

// TestP4CostOfALocalReplay is the gate of P4: what a replay from the cache of the process
// allocates besides net/http and a handler that does nothing but answer. P4 allows 10;
// there is 1, as over memory. It is not parallel, because it counts the allocations of
// the process.
func TestP4CostOfALocalReplay(t *testing.T) {
	if labtest.RaceEnabled {
		t.Skip("allocations are those of a program without the race detector")
	}
	client := labtest.RedisClient(t, servers.Redis.Start(t).Addr())
	store, err := repriselocal.New(labtest.RedisStore(t, client, repriseredis.Config{}), repriselocal.Config{MaxAge: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	addr := costServer(t, reprisehttp.Middleware(costGuard(t, store), reprisehttp.Unscoped)(costHandler()))
	own := adaptertest.AllocsPerRequest(t, costServer(t, costHandler()), "/orders", adaptertest.NewKeys)
	got := adaptertest.AllocsPerRequest(t, addr, "/orders", adaptertest.Replays)
	stats := store.Stats()
	t.Logf("%.2f allocations a replay, of which %.2f are those of net/http and the handler; %+v", got, own, stats)
	if got > own+1+0.5 { // maps grow now and then
		t.Errorf("%.2f allocations a replay, %.2f more than without the middleware; want at most 1 more", got, got-own)
	}
	if stats.Misses > stats.Hits/10 {
		t.Errorf("most replays asked the server: %+v", stats)
	}
}

// TestCostOfNetHTTPOverRedis is the gate of P5 for Redis: how much more a request
// allocates than over memory, client library included. P5 allows 13 and 6; there are 7
// and 6. It is not parallel, because it counts the allocations of the process.
func TestCostOfNetHTTPOverRedis(t *testing.T) {
	if labtest.RaceEnabled {
		t.Skip("allocations are those of a program without the race detector")
	}
	store := labtest.RedisStore(t, labtest.RedisClient(t, servers.Redis.Start(t).Addr()), repriseredis.Config{})
	over := func(guard *protocol.Guard) string {
		return costServer(t, reprisehttp.Middleware(guard, reprisehttp.Unscoped)(costHandler()))
	}
	memory, redis := over(costGuard(t, memstore.New())), over(costGuard(t, store))
	for kind, more := range map[adaptertest.Traffic]float64{adaptertest.NewKeys: 8, adaptertest.Replays: 6} {
		least := adaptertest.AllocsPerRequest(t, memory, "/orders", kind)
		got := adaptertest.AllocsPerRequest(t, redis, "/orders", kind)
		t.Logf("%s: %.2f allocations a request, over memory %.2f", kind, got, least)
		if got > least+more+0.5 { // maps grow now and then
			t.Errorf("%s: %.2f allocations a request, %.2f more than over memory; want at most %v more", kind, got, got-least, more)
		}
	}
}
