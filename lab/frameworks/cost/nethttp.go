// Package cost has the gates of allocations that the tests of every framework share.
package cost

import (
	"context"
	"errors"
	"net"
	"net/http"
	"testing"
	"time"

	reprisehttp "github.com/reprise-go/reprise/adapters/nethttp"
	"github.com/reprise-go/reprise/conformance/adaptertest"
	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
)

// Handler sends the response of the benchmarks' handlers.
func Handler() http.Handler {
	body := []byte(adaptertest.DefaultBody)
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", adaptertest.DefaultContentType)
		w.WriteHeader(adaptertest.DefaultStatus)
		_, _ = w.Write(body)
	})
}

// Guard returns a guard over a store.
func Guard(tb testing.TB, store store.Store) *protocol.Guard {
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
	guard, err := protocol.Over(engine, protocol.Config{})
	if err != nil {
		tb.Fatal(err)
	}
	return guard
}

// Middleware returns the middleware over a memory store.
func Middleware(tb testing.TB) func(http.Handler) http.Handler {
	tb.Helper()
	return reprisehttp.Middleware(Guard(tb, memstore.New()), reprisehttp.Unscoped)
}

// Server serves a handler until the test ends.
func Server(tb testing.TB, handler http.Handler) (addr string) {
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
