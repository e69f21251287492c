package frameworks

import (
	"net/http"
	"testing"

	"github.com/reprise-go/reprise/conformance/adaptertest"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/lab/internal/labtest"
)

// costFrameworks has [costHandler] in each framework by its name, behind the middleware
// if there is a guard. The build tag of a framework leaves its file out.
var costFrameworks = map[string]func(*protocol.Guard) http.Handler{}

// TestCostOfFrameworksOverMemory is their gate of P5: a request to a handler that does
// nothing but answer costs at most three allocations more than with net/http, framework
// included, and one that is not keyed costs no more than without the middleware. It is
// not parallel, because it counts the allocations of the process.
func TestCostOfFrameworksOverMemory(t *testing.T) {
	if labtest.RaceEnabled {
		t.Skip("allocations are those of a program without the race detector")
	}
	guard := costGuard(t, memstore.New())
	netHTTP := costServer(t, costMiddleware(t)(costHandler()))
	for name, handler := range costFrameworks {
		bare, protected := costServer(t, handler(nil)), costServer(t, handler(guard))
		for _, limit := range []struct {
			kind adaptertest.Traffic
			than string
			more float64
		}{
			{adaptertest.NotKeyed, bare, 0},
			{adaptertest.Unkeyed, bare, 0},
			{adaptertest.NewKeys, netHTTP, 3},
			{adaptertest.Replays, netHTTP, 3},
		} {
			base := adaptertest.AllocsPerRequest(t, limit.than, "/orders", limit.kind)
			got := adaptertest.AllocsPerRequest(t, protected, "/orders", limit.kind)
			t.Logf("%s, %s: %.2f allocations a request, against %.2f", name, limit.kind, got, base)
			if got > base+limit.more+0.5 { // maps grow now and then
				t.Errorf("%s, %s: %.2f allocations a request, against %.2f; want at most %v more", name, limit.kind, got, base, limit.more)
			}
		}
	}
}
