// Package cost has the gates of allocations that the tests of every framework share.
package cost

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	reprisehttp "github.com/reprise-go/reprise/adapters/nethttp"
	"github.com/reprise-go/reprise/conformance/adaptertest"
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
	guard, err := protocol.New(store, protocol.Config{})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := guard.Close(context.WithoutCancel(tb.Context())); err != nil {
			tb.Error(err)
		}
	})
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
	server := httptest.NewServer(handler)
	tb.Cleanup(server.Close)
	return server.Listener.Addr().String()
}
