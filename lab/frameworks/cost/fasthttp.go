package cost

import (
	"testing"

	"github.com/reprise-go/reprise/lab/bench/load"
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
	base := Allocs(t, serve(false), load.NoKey, 1)
	protected := serve(true)
	for kind, more := range map[load.Kind]float64{load.NoKey: 0, load.New: 4, load.Replay: 0} {
		got := Allocs(t, protected, kind, 1)
		t.Logf("%s: %.2f allocations a request, against %.2f", kind, got, base)
		if got > base+more+0.5 { // maps grow now and then
			t.Errorf("%s: %.2f allocations a request, against %.2f; want at most %v more", kind, got, base, more)
		}
	}
}
