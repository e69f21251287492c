package serve

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/reprise-go/reprise/conformance"
)

// native is a server of a framework, as that framework is served on a listener.
type native interface {
	// serve serves until shutdown, and returns an error only if it ended for another reason. It closes the listener.
	serve(net.Listener) error

	// shutdown closes the listener, waits for the requests that run, and closes their connections when ctx ends before they
	// do; then it returns an error.
	shutdown(ctx context.Context) error
}

// adapters has every adapter by its name.
var adapters = map[string]func(*app) native{
	"echo":    newEcho,
	"fiber":   newFiber,
	"gin":     newGin,
	"nethttp": newNetHTTP,
}

// Adapters returns the names of the adapters, sorted.
func Adapters() []string { return slices.Sorted(maps.Keys(adapters)) }

// testGrace is how long a server waits for its requests when its test has ended.
const testGrace = 2 * time.Second

// Adapter returns what serves an adapter inside of a test: the Serve of a conformance.AdapterFixture. The server has an engine of
// its own over the store, listens on a free loopback port, and ends with the test that it is given. The name is one of [Adapters].
func Adapter(name string) func(testing.TB, conformance.AdapterOptions) (addr string) {
	return func(tb testing.TB, o conformance.AdapterOptions) string {
		tb.Helper()
		build, known := adapters[name]
		if !known {
			tb.Fatalf("serve: no adapter %q; there are %v", name, Adapters())
		}
		return inTest(build)(tb, o)
	}
}

// inTest serves what build makes until the test that it is given has ended.
func inTest(build func(*app) native) func(testing.TB, conformance.AdapterOptions) (addr string) {
	return func(tb testing.TB, o conformance.AdapterOptions) string {
		tb.Helper()
		a, err := newApp(o, slog.New(slog.DiscardHandler))
		if err != nil {
			tb.Fatalf("serve: %v", err)
		}
		ln, err := listen(tb.Context(), "127.0.0.1:0")
		if err != nil {
			tb.Fatalf("serve: %v", err)
		}
		server := build(a)
		ended := make(chan error, 1)
		go func() { ended <- server.serve(ln) }()
		tb.Cleanup(func() {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(tb.Context()), testGrace)
			defer cancel()
			_ = a.drain(ctx, server) // a case may leave handlers behind; it says so where that is a mistake
			if err := <-ended; err != nil {
				tb.Errorf("serve: %v", err)
			}
		})
		return ln.Addr().String()
	}
}

// drain ends a server and its engine: it waits for what runs until ctx ends, and reports what did not end by then.
func (a *app) drain(ctx context.Context, server native) error {
	_ = server.shutdown(ctx) // a connection that is still open may have nothing left to say; what runs is counted below
	if err := a.engine.Close(ctx); err != nil {
		return err
	}
	if n := a.runs.inFlight(); n > 0 {
		return fmt.Errorf("%d handlers have not ended", n)
	}
	return nil
}

func listen(ctx context.Context, addr string) (net.Listener, error) {
	return new(net.ListenConfig).Listen(ctx, "tcp", addr)
}
