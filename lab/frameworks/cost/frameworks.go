package cost

import (
	"net/http"
	"testing"

	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/lab/bench/load"
	"github.com/reprise-go/reprise/lab/internal/labtest"
)

// Framework is the gate of P5 for a framework: a request to a minimal handler costs at
// most three allocations more than with net/http, framework included, and one that is not
// keyed costs no more than without the middleware. build returns [Handler] in the
// framework, behind the middleware if there is a guard. The test must not run in
// parallel, because it counts the allocations of the process.
func Framework(t *testing.T, build func(*protocol.Guard) http.Handler) {
	t.Helper()
	if labtest.RaceEnabled {
		t.Skip("allocations are those of a program without the race detector")
	}
	netHTTP := Server(t, Middleware(t)(Handler()))
	bare, protected := Server(t, build(nil)), Server(t, build(Guard(t, memstore.New())))
	for _, limit := range []struct {
		kind load.Kind
		than string
		more float64
	}{
		{NotKeyed, bare, 0},
		{load.NoKey, bare, 0},
		{load.New, netHTTP, 3},
		{load.Replay, netHTTP, 3},
	} {
		base := Allocs(t, limit.than, limit.kind, 1)
		got := Allocs(t, protected, limit.kind, 1)
		t.Logf("%s: %.2f allocations a request, against %.2f", limit.kind, got, base)
		if got > base+limit.more+0.5 { // maps grow now and then
			t.Errorf("%s: %.2f allocations a request, against %.2f; want at most %v more", limit.kind, got, base, limit.more)
		}
	}
}
