package reprisetest

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"testing"
	"time"

	"github.com/reprise-go/reprise/conformance/faultstore"
	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
)

// App runs a handler under test in simulated processes of a service: each has its own
// engine and guard, over one store in memory. One process serves at a time; the methods
// that let it die continue with the next. An App is not safe for concurrent use.
type App struct {
	tb    testing.TB
	cfg   protocol.Config
	build func(*protocol.Guard) http.Handler
	store *memstore.Store
	now   process
}

// process is one process of the service.
type process struct {
	engine  *reprise.Engine
	handler http.Handler
	faults  *faultstore.Faults
}

// Durations of an App's engines. The lease is the default, since Advance ends it; waits
// for a failing store are short.
const (
	lease   = 30 * time.Second
	attempt = 100 * time.Millisecond
)

// patience is how long an App waits for work that continues after a response.
const patience = 10 * time.Second

// New returns an App for the handler, with its middleware, that build makes for a guard
// with the policy cfg. It sets the times and the log of cfg.Engine. It calls build for
// each process: shared resources, such as a database, belong outside of build. The App is
// closed when the test ends.
//
//	app := reprisetest.New(t, protocol.Config{Required: true}, func(guard *protocol.Guard) http.Handler {
//		return reprisehttp.Middleware(guard, tenantOf)(createOrder(database))
//	})
func New(tb testing.TB, cfg protocol.Config, build func(*protocol.Guard) http.Handler) *App {
	tb.Helper()
	a := &App{tb: tb, cfg: cfg, build: build, store: memstore.New()}
	a.start(cfg)
	return a
}

// start starts the next process.
func (a *App) start(cfg protocol.Config) {
	a.tb.Helper()
	store, faults := faultstore.New(a.store)
	cfg.Engine.Lease, cfg.Engine.ClaimTimeout, cfg.Engine.CompleteTimeout = lease, attempt, attempt
	cfg.Engine.Log = slog.New(slog.DiscardHandler)
	guard, err := protocol.New(store, cfg)
	if err != nil {
		a.tb.Fatal(err)
	}
	a.tb.Cleanup(func() {
		faults.Close()
		ctx, cancel := context.WithTimeout(context.Background(), attempt)
		defer cancel()
		_ = guard.Close(ctx) // a dead process leaves its work unfinished
	})
	a.now = process{engine: guard.Engine(), handler: a.build(guard), faults: faults}
}

// Store returns the store, for a test that looks at the records.
func (a *App) Store() *memstore.Store { return a.store }

// Handler returns the handler of the process that serves now, for [Replay], [Race] and
// servers.
func (a *App) Handler() http.Handler { return a.now.handler }

// Advance moves the clock of the store by d: leases lapse and retentions end. It does not
// move the time of the handler and of timers; in a bubble of testing/synctest, sleep
// instead.
func (a *App) Advance(d time.Duration) { a.store.Advance(d) }

// Send sends a request once.
func (a *App) Send(r *http.Request) *Response {
	a.tb.Helper()
	return read(a.tb, r).send(a.tb, a.now.handler)
}

// Lapse lets a process die after it claimed the request and before its handler ran, and
// then lets the lease lapse. It returns the response to the retry, which another process
// serves.
//
// It fails the test unless a retry is refused before the lease has lapsed and runs as
// attempt 2 after that. With the preset AtMostOnce, the later retry must be refused with
// 409 outcome-unknown, because the new process cannot know whether the handler ran.
func (a *App) Lapse(r *http.Request) *Response {
	a.tb.Helper()
	dying := a.cfg
	dying.FailOpen = false // or else the handler would run
	return a.die(r, dying, faultstore.Claim, faultstore.LoseReply(), reprise.Unavailable, "the request was not claimed by the guard")
}

// Crash lets a process die after the handler ran and before its response was recorded or
// sent: the effect happened, and neither the client nor the store knows. Then it lets the
// lease lapse. It returns the response to the retry, which another process serves.
//
// It fails the test unless a retry is refused before the lease has lapsed and runs as
// attempt 2 after that. With the preset AtMostOnce, the later retry must be refused with
// 409 outcome-unknown. Check in the test how often the effect happened: twice, if the
// handler cannot tell attempt 2 from attempt 1.
func (a *App) Crash(r *http.Request) *Response {
	a.tb.Helper()
	return a.die(r, a.cfg, faultstore.Complete, down, reprise.Claimed, "the handler did not run under the guard")
}

// die sends a request to a process that a fault keeps from recording it, and then to the
// next process. It fails the test with otherwise unless the first one counts outcome.
func (a *App) die(r *http.Request, cfg protocol.Config, op faultstore.Op, fault faultstore.Fault, outcome reprise.Outcome, otherwise string) *Response {
	a.tb.Helper()
	m := read(a.tb, r)
	a.start(cfg)
	a.now.faults.Always(op, fault)
	a.now.faults.Always(faultstore.Renew, down) // a dead process neither renews nor releases its claims
	a.now.faults.Always(faultstore.Release, down)
	lost := m.send(a.tb, a.now.handler)
	if !a.counted(outcome, 1) {
		a.tb.Errorf("%s: %s\n\n%v", otherwise, unguarded, lost)
		return lost
	}
	return a.takeOver(m)
}

const unguarded = "the route may be without the middleware, the method not keyed, or the request without a key"

var down = faultstore.FailBefore(fmt.Errorf("%w: reprisetest: the store is down", store.ErrUnavailable))

// takeOver sends a request to the next process, before and after the lease of the first
// one lapsed.
func (a *App) takeOver(m message) *Response {
	a.tb.Helper()
	a.start(a.cfg)
	early := m.send(a.tb, a.now.handler)
	if !a.counted(reprise.InProgress, 1) {
		a.tb.Errorf("the retry before the lease lapsed was not refused:\n\n%v", early)
		return early
	}
	a.store.Advance(lease)
	late := m.send(a.tb, a.now.handler)
	if a.cfg.Preset == reprise.AtMostOnce || a.cfg.MaxAttempts == 1 {
		if !a.counted(reprise.Lapsed, 1) {
			a.tb.Errorf("the retry after the lease lapsed was not refused with outcome-unknown:\n\n%v", late)
		}
		return late
	}
	if !a.counted(reprise.Claimed, 1) {
		a.tb.Errorf("the retry after the lease lapsed did not run:\n\n%v", late)
	}
	return late
}

// counted reports whether the process has counted n requests of an outcome.
func (a *App) counted(outcome reprise.Outcome, n uint64) bool {
	return a.now.engine.Stats().Totals.Outcomes[outcome] == n
}

// StoreDown sends a request while the store cannot be reached. It fails the test unless
// the guard refuses it or, with FailOpen, runs it unprotected. Afterwards the store works
// again.
func (a *App) StoreDown(r *http.Request) *Response {
	a.tb.Helper()
	want := reprise.Unavailable
	if a.cfg.FailOpen {
		want = reprise.Unprotected
	}
	before := a.now.engine.Stats().Totals.Outcomes[want]
	a.now.faults.Always(faultstore.Claim, down)
	response := a.Send(r)
	a.now.faults.Clear(faultstore.Claim)
	if !a.counted(want, before+1) {
		a.tb.Errorf("the request while the store is down is not %v: %s\n\n%v", want, unguarded, response)
	}
	return response
}

// StoreFailsAfterRun lets the store fail when the response is to be recorded, and work
// again after the response was sent. It fails the test unless the client gets the
// response, and a retry gets its replay without a second run. It returns both.
func (a *App) StoreFailsAfterRun(r *http.Request) (first, again *Response) {
	a.tb.Helper()
	return a.failCompletion(r, down, "unrecorded")
}

// StoreLosesReply lets the store record the response and lose its own reply. It fails the
// test unless the client gets the response and a retry gets its replay. It returns both.
func (a *App) StoreLosesReply(r *http.Request) (first, again *Response) {
	a.tb.Helper()
	return a.failCompletion(r, faultstore.LoseReply(), "")
}

func (a *App) failCompletion(r *http.Request, fault faultstore.Fault, mark string) (first, again *Response) {
	a.tb.Helper()
	m := read(a.tb, r)
	if mark == "" {
		a.now.faults.Next(faultstore.Complete, fault)
	} else {
		a.now.faults.Always(faultstore.Complete, fault)
	}
	claimed := a.now.engine.Stats().Totals.Outcomes[reprise.Claimed]
	first = m.send(a.tb, a.now.handler)
	a.now.faults.Clear(faultstore.Complete)
	switch {
	case !a.counted(reprise.Claimed, claimed+1):
		a.tb.Errorf("the handler did not run under the guard: %s\n\n%v", unguarded, first)
		return first, first
	case first.Panic != nil || first.Header.Get(protocol.FieldStatus) != mark:
		a.tb.Errorf("the first response has %s %q, want %q; a response that is not kept cannot show it\n\n%v",
			protocol.FieldStatus, first.Header.Get(protocol.FieldStatus), mark, first)
		return first, first
	}
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); a.now.engine.Stats().Totals.Running > 0 && time.Now().Before(deadline); {
		<-tick.C
	}
	again = m.send(a.tb, a.now.handler)
	wantReplay(a.tb, first, again)
	if again.Replayed() && !a.counted(reprise.Claimed, claimed+1) {
		a.tb.Errorf("the handler ran %d times, want 1", a.now.engine.Stats().Totals.Outcomes[reprise.Claimed]-claimed)
	}
	return first, again
}
