// Package harness has the tests of the adapters of net/http, Gin and Echo in common: a
// native application on a real listener, a client that compares responses, and the halves
// of their tests that do not depend on a framework.
package harness

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
)

// Patience limits how long a test waits for an event.
const Patience = time.Minute

// An App is an application on a real listener, and an engine over its store.
type App struct {
	tb     testing.TB
	engine *reprise.Engine
	server *httptest.Server
	runs   atomic.Int64
}

// New serves a handler until the test ends. Routes may be added until the first request.
func New(tb testing.TB, s store.Store, handler http.Handler) *App {
	tb.Helper()
	engine, err := reprise.New(s, reprise.Config{})
	if err != nil {
		tb.Fatal(err)
	}
	a := &App{tb: tb, engine: engine, server: httptest.NewUnstartedServer(handler)}
	tb.Cleanup(func() {
		a.server.Close()
		if err := engine.Close(context.WithoutCancel(tb.Context())); err != nil {
			tb.Errorf("close: %v", err)
		}
	})
	a.server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError) // handlers panic
	a.server.Start()
	return a
}

// Guard returns another guard over the store of the application.
func (a *App) Guard(policy protocol.Config) *protocol.Guard {
	a.tb.Helper()
	guard, err := protocol.Over(a.engine, policy)
	if err != nil {
		a.tb.Fatal(err)
	}
	return guard
}

// Count counts a run of a handler.
func (a *App) Count() { a.runs.Add(1) }

// Ran fails the test unless the handlers that count ran n times so far.
func (a *App) Ran(n int64) {
	a.tb.Helper()
	if got := a.runs.Load(); got != n {
		a.tb.Errorf("handlers ran %d times, want %d", got, n)
	}
}

// Eventually polls until done reports true, and fails the test after [Patience].
func (a *App) Eventually(done func() bool) {
	a.tb.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(Patience); !done(); <-tick.C {
		if time.Now().After(deadline) {
			a.tb.Fatalf("not within %v", Patience)
		}
	}
}
