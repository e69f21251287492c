package frameworks

import (
	"context"
	"errors"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/reprise-go/reprise/conformance/adaptertest"
	"github.com/reprise-go/reprise/lab/internal/labtest"

	reprisehttp "github.com/reprise-go/reprise/adapters/nethttp"
	"github.com/reprise-go/reprise/conformance"
	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/serve"
)

// TestCostOfNetHTTPOverMemory is the gate of P5, which allows 7 and 1, and of P11: what
// the middleware allocates besides net/http and a handler that does nothing but answer.
// It is not parallel, because it counts the allocations of the process.
func TestCostOfNetHTTPOverMemory(t *testing.T) {
	if labtest.RaceEnabled {
		t.Skip("allocations are those of a program without the race detector")
	}
	bare := costServer(t, costHandler())
	protected := costServer(t, costMiddleware(t)(costHandler()))
	for _, limit := range []struct {
		kind, own adaptertest.Traffic // and the traffic of the same form whose answers have no mark
		more      float64
	}{
		{adaptertest.NotKeyed, adaptertest.NotKeyed, 0},
		{adaptertest.Unkeyed, adaptertest.Unkeyed, 0},
		{adaptertest.NewKeys, adaptertest.NewKeys, 6},
		{adaptertest.Replays, adaptertest.NewKeys, 1},
	} {
		own := adaptertest.AllocsPerRequest(t, bare, "/orders", limit.own)
		got := adaptertest.AllocsPerRequest(t, protected, "/orders", limit.kind)
		t.Logf("%s: %.2f allocations a request, of which %.2f are those of net/http and the handler", limit.kind, got, own)
		if got > own+limit.more+0.5 { // maps grow now and then
			t.Errorf("%s: %.2f allocations a request, %.2f more than without the middleware; want at most %v more", limit.kind, got, got-own, limit.more)
		}
	}
}

// BenchmarkNetHTTPOverMemory shows the time as well: unkeyed against not-keyed is what
// the middleware adds to a request without a key.
func BenchmarkNetHTTPOverMemory(b *testing.B) {
	adaptertest.Benchmark(b, func(testing.TB) adaptertest.Fixture {
		return adaptertest.Fixture{
			Open:  func(testing.TB) store.Store { return memstore.New() },
			Serve: serve.Adapter("nethttp"), Advance: conformance.Sleep,
		}
	})
}

// BenchmarkUnkeyedNetHTTP is P11: the difference of the two is what the middleware costs
// a request without a key, in time and allocations, without a network in between.
func BenchmarkUnkeyedNetHTTP(b *testing.B) {
	for name, handler := range map[string]http.Handler{"bare": costHandler(), "protected": costMiddleware(b)(costHandler())} {
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

// discard is a response that nobody reads.
type discard struct{ header http.Header }

func (d discard) Header() http.Header       { return d.header }
func (discard) Write(p []byte) (int, error) { return len(p), nil }
func (discard) WriteHeader(int)             {}

// costHandler does nothing but answer.
func costHandler() http.Handler {
	body := []byte(adaptertest.DefaultBody)
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", adaptertest.DefaultContentType)
		w.WriteHeader(adaptertest.DefaultStatus)
		_, _ = w.Write(body)
	})
}

// costGuard returns a guard over a store.
func costGuard(tb testing.TB, store store.Store) *protocol.Guard {
	tb.Helper()
	engine, err := reprise.New(store, reprise.Config{})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := engine.Close(context.WithoutCancel(tb.Context())); err != nil {
			tb.Error(err)
		}
	})
	guard, err := protocol.New(engine, protocol.Config{})
	if err != nil {
		tb.Fatal(err)
	}
	return guard
}

// costMiddleware returns the middleware over a memory store.
func costMiddleware(tb testing.TB) func(http.Handler) http.Handler {
	tb.Helper()
	return reprisehttp.Middleware(costGuard(tb, memstore.New()), reprisehttp.Unscoped)
}

// costServer serves a handler until the test ends.
func costServer(tb testing.TB, handler http.Handler) (addr string) {
	tb.Helper()
	ln, err := new(net.ListenConfig).Listen(tb.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ln) }()
	tb.Cleanup(func() {
		_ = server.Close()
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			tb.Error(err)
		}
	})
	return ln.Addr().String()
}
