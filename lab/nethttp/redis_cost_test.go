package labhttp_test

import (
	"testing"

	reprisehttp "github.com/reprise-go/reprise/adapters/nethttp"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/lab/bench/load"
	"github.com/reprise-go/reprise/lab/frameworks/cost"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/servers"
	repriseredis "github.com/reprise-go/reprise/store/redis"
)

// TestCostOfNetHTTPOverRedis gates how much more a request allocates than over memory,
// client library included. P5 allows 13 and 6, which the commands and pipelines of the
// client do not meet: see ADR 8. How many requests share a batch differs from run to run.
// It is not parallel, because it counts the allocations of the process.
func TestCostOfNetHTTPOverRedis(t *testing.T) {
	if labtest.RaceEnabled {
		t.Skip("allocations are those of a program without the race detector")
	}
	store := labtest.RedisStore(t, labtest.RedisClient(t, servers.Redis.Start(t).Addr()), repriseredis.Config{})
	over := func(guard *protocol.Guard) string {
		return cost.Server(t, reprisehttp.Middleware(guard, reprisehttp.Unscoped)(cost.Handler()))
	}
	memory, redis := over(cost.Guard(t, memstore.New())), over(cost.Guard(t, store))
	for _, c := range []struct {
		kind        load.Kind
		connections int
		more        float64
	}{
		{load.New, 16, 30},
		{load.Replay, 16, 20},
		{load.New, 1, 22},
		{load.Replay, 1, 17},
	} {
		least := cost.Allocs(t, memory, c.kind, c.connections)
		got := cost.Allocs(t, redis, c.kind, c.connections)
		t.Logf("%s over %d connections: %.2f allocations a request, over memory %.2f", c.kind, c.connections, got, least)
		if got > least+c.more+0.5 { // maps grow now and then
			t.Errorf("%s over %d connections: %.2f allocations a request, %.2f more than over memory; want at most %v more", c.kind, c.connections, got, got-least, c.more)
		}
	}
}
