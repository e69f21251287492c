// Package harness has the tests of the adapters for Fiber 2 and 3 in common: an app on a
// real listener, and a client that sends requests as they are.
package harness

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
)

// Patience bounds every wait of a test.
const Patience = time.Minute

// A Host serves an app.
type Host struct {
	Serve    func(net.Listener) error
	Shutdown func(context.Context) error
}

// HTTP is a handler's server of net/http.
func HTTP(h http.Handler) Host {
	server := &http.Server{Handler: h, ReadHeaderTimeout: Patience}
	return Host{server.Serve, server.Shutdown}
}

// A Service is an app on a real listener.
type Service struct {
	Guard *protocol.Guard
	Runs  atomic.Int64 // of the handlers that count them

	tb   testing.TB
	addr string
}

// New makes the guard of a service over a store, whose transactions it uses.
func New(tb testing.TB, st store.Store, policy protocol.Config) *Service {
	tb.Helper()
	_, policy.Transactional = st.(store.Transactor)
	guard, err := protocol.New(st, policy)
	if err != nil {
		tb.Fatal(err)
	}
	return &Service{Guard: guard, tb: tb}
}

// Serve serves the app until the test ends.
func (s *Service) Serve(on Host) {
	s.tb.Helper()
	ln, err := new(net.ListenConfig).Listen(s.tb.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		s.tb.Fatal(err)
	}
	s.addr = ln.Addr().String()
	ended := make(chan error, 1)
	go func() { ended <- on.Serve(ln) }()
	s.tb.Cleanup(func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(s.tb.Context()), Patience)
		defer cancel()
		if err := on.Shutdown(closing); err != nil {
			s.tb.Error(err)
		}
		if err := <-ended; err != nil && !errors.Is(err, http.ErrServerClosed) {
			s.tb.Error(err)
		}
		if err := s.Guard.Close(closing); err != nil {
			s.tb.Error(err)
		}
	})
}

// Ran fails the test unless the handlers that count ran n times so far.
func (s *Service) Ran(n int64) {
	s.tb.Helper()
	if got := s.Runs.Load(); got != n {
		s.tb.Errorf("the handler ran %d times, want %d", got, n)
	}
}
