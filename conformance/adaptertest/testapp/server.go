package testapp

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/reprise-go/reprise/conformance/adaptertest"
)

// Server is a server of a framework, as that framework is served on a listener.
type Server interface {
	// Serve serves until shutdown, and returns an error only if it ended for another
	// reason. It closes the listener.
	Serve(net.Listener) error

	// Shutdown closes the listener, waits for the requests that run, and closes their
	// connections when ctx ends before they do; then it returns an error.
	Shutdown(ctx context.Context) error
}

// testGrace is how long a server waits for its requests when its test has ended.
const testGrace = 2 * time.Second

// InTest returns a function that serves the server of build until its test ends.
func InTest(build func(*App) Server) func(testing.TB, adaptertest.Options) (addr string) {
	return func(tb testing.TB, o adaptertest.Options) string {
		tb.Helper()
		o.Engine.Log = slog.New(slog.DiscardHandler)
		a, err := New(o, slog.New(slog.DiscardHandler))
		if err != nil {
			tb.Fatalf("serve: %v", err)
		}
		ln, err := new(net.ListenConfig).Listen(tb.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			tb.Fatalf("serve: %v", err)
		}
		server := build(a)
		ended := make(chan error, 1)
		go func() { ended <- server.Serve(ln) }()
		tb.Cleanup(func() {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(tb.Context()), testGrace)
			defer cancel()
			_ = a.Drain(ctx, server) // a case may leave handlers behind; it says so where that is a mistake
			if err := <-ended; err != nil {
				tb.Errorf("serve: %v", err)
			}
		})
		return ln.Addr().String()
	}
}

// Drain shuts a server and its engine down. It waits for running handlers until ctx ends,
// and reports those that did not return.
func (a *App) Drain(ctx context.Context, server Server) error {
	_ = server.Shutdown(ctx) // idle connections may be open; running handlers are counted below
	if err := a.engine.Close(ctx); err != nil {
		return err
	}
	if n := a.runs.inFlight(); n > 0 {
		return fmt.Errorf("%d handlers have not ended", n)
	}
	return nil
}
