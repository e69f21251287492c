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

// TestCostOfNetHTTPOverMemory is the gate of P5, which allows 7 and 1, and of P11: the
// allocations of the middleware, besides net/http and a minimal handler. It is not
// parallel, because it counts the allocations of the process.
func TestCostOfNetHTTPOverMemory(t *testing.T) {
	if labtest.RaceEnabled {
		t.Skip("allocations are those of a program without the race detector")
	}
	bare := cost.Server(t, cost.Handler())
	protected := cost.Server(t, cost.Middleware(t)(cost.Handler()))
	for _, limit := range []struct {
		kind, own load.Kind // and the traffic of the same form whose responses have no mark
		more      float64
	}{
		{cost.NotKeyed, cost.NotKeyed, 0},
		{load.NoKey, load.NoKey, 0},
		{load.New, load.New, 6},
		{load.Replay, load.New, 1},
	} {
		own := cost.Allocs(t, bare, limit.own, 1)
		got := cost.Allocs(t, protected, limit.kind, 1)
		t.Logf("%s: %.2f allocations a request, of which %.2f are those of net/http and the handler", limit.kind, got, own)
		if got > own+limit.more+0.5 { // maps grow now and then
			t.Errorf("%s: %.2f allocations a request, %.2f more than without the middleware; want at most %v more", limit.kind, got, got-own, limit.more)
		}
	}
}

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
