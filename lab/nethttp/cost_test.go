package labhttp_test

import (
	"testing"

	"github.com/reprise-go/reprise/lab/bench/load"
	"github.com/reprise-go/reprise/lab/frameworks/cost"
	"github.com/reprise-go/reprise/lab/internal/labtest"
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
