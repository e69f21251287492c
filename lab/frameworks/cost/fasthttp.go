package cost

import (
	"testing"

	"github.com/reprise-go/reprise/conformance/adaptertest"
	"github.com/reprise-go/reprise/lab/internal/labtest"
)

// Fasthttp is the gate of P5 for a framework whose server is fasthttp: a replay allocates
// nothing more than the framework, and a new key what the engine keeps of it. serve
// serves [Handler] at POST /orders in the framework, behind the middleware or bare. The
// test must not run in parallel, because it counts the allocations of the process.
func Fasthttp(t *testing.T, serve func(protected bool) (addr string)) {
	t.Helper()
	if labtest.RaceEnabled {
		t.Skip("allocations are those of a program without the race detector")
	}
	base := adaptertest.AllocsPerRequest(t, serve(false), "/orders", adaptertest.Unkeyed, 1)
	protected := serve(true)
	for kind, more := range map[adaptertest.Traffic]float64{adaptertest.Unkeyed: 0, adaptertest.NewKeys: 4, adaptertest.Replays: 0} {
		got := adaptertest.AllocsPerRequest(t, protected, "/orders", kind, 1)
		t.Logf("%s: %.2f allocations a request, against %.2f", kind, got, base)
		if got > base+more+0.5 { // maps grow now and then
			t.Errorf("%s: %.2f allocations a request, against %.2f; want at most %v more", kind, got, base, more)
		}
	}
}
