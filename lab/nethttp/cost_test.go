package labhttp_test

import (
	"net/http"
	"testing"

	apphttp "github.com/reprise-go/reprise/adapters/nethttp/nativeapp"
	"github.com/reprise-go/reprise/conformance/adaptertest"
	"github.com/reprise-go/reprise/conformance/adaptertest/testapp"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/store"
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
		kind, own adaptertest.Traffic // and the traffic of the same form whose responses have no mark
		more      float64
	}{
		{adaptertest.NotKeyed, adaptertest.NotKeyed, 0},
		{adaptertest.Unkeyed, adaptertest.Unkeyed, 0},
		{adaptertest.NewKeys, adaptertest.NewKeys, 6},
		{adaptertest.Replays, adaptertest.NewKeys, 1},
	} {
		own := adaptertest.AllocsPerRequest(t, bare, "/orders", limit.own, 1)
		got := adaptertest.AllocsPerRequest(t, protected, "/orders", limit.kind, 1)
		t.Logf("%s: %.2f allocations a request, of which %.2f are those of net/http and the handler", limit.kind, got, own)
		if got > own+limit.more+0.5 { // maps grow now and then
			t.Errorf("%s: %.2f allocations a request, %.2f more than without the middleware; want at most %v more", limit.kind, got, got-own, limit.more)
		}
	}
}

// BenchmarkNetHTTPOverMemory shows the time as well: the difference of unkeyed and
// not-keyed is the cost of the middleware for a request without a key.
func BenchmarkNetHTTPOverMemory(b *testing.B) {
	adaptertest.Benchmark(b, func(testing.TB) adaptertest.Fixture {
		return adaptertest.Fixture{
			Open:  func(testing.TB) store.Store { return memstore.New() },
			Serve: testapp.InTest(apphttp.New),
		}
	})
}

// BenchmarkUnkeyedNetHTTP is P11: the difference of the two is the cost of the middleware
// for a request without a key, in time and allocations, without a network in between.
func BenchmarkUnkeyedNetHTTP(b *testing.B) {
	for name, handler := range map[string]http.Handler{"bare": cost.Handler(), "protected": cost.Middleware(b)(cost.Handler())} {
		b.Run(name, func(b *testing.B) {
			w := discard{http.Header{}}
			r, err := http.NewRequestWithContext(b.Context(), http.MethodPost, "http://conformance.test/orders", http.NoBody)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				handler.ServeHTTP(w, r)
			}
		})
	}
}

// discard is a response without a reader.
type discard struct{ header http.Header }

func (d discard) Header() http.Header       { return d.header }
func (discard) Write(p []byte) (int, error) { return len(p), nil }
func (discard) WriteHeader(int)             {}
