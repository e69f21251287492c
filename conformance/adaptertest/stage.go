package adaptertest

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/reprise-go/reprise/conformance/internal/suite"

	"github.com/reprise-go/reprise/conformance/faultstore"
	reprise "github.com/reprise-go/reprise/core"
)

// stage is what a case for adapters works with: the test it reports to, and a tenant and a key that no other case uses.
type stage struct {
	testing.TB

	fixture Fixture
	client  *http.Client
	tenant  string
	key     string
}

func newStage(tb testing.TB, f Fixture) *stage {
	tb.Helper()
	if f.Grain == 0 {
		f.Grain = defaultGrain
	}
	if f.Patience == 0 {
		f.Patience = defaultPatience
	}
	id := suite.NewID()
	return &stage{TB: tb, fixture: f, client: newClient(), tenant: "tenant-" + id.Short(), key: "key-" + id.String()[:32]}
}

// theOp is the operation that cases run unless they name another.
const theOp = "op"

// post returns a keyed request that makes the handler do p.
func (s *stage) post(p Program) call {
	return call{method: "POST", target: "/t/" + theOp, tenant: s.tenant, keys: []string{s.key}, body: `{"amount":1}`}.does(p)
}

// freshKey returns c with a key that no other call has.
func (c call) freshKey() call {
	id := suite.NewID()
	return c.withKeys("key-" + id.String()[:32])
}

// advance lets at least d pass on the store's clock.
func (s *stage) advance(d time.Duration) {
	s.Helper()
	s.fixture.Advance(s, d)
}

// eventually polls until done reports true.
func (s *stage) eventually(what string, done func() bool) {
	s.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(s.fixture.Patience); !done(); <-tick.C {
		if time.Now().After(deadline) {
			s.Fatalf("not within %v: %s", s.fixture.Patience, what)
		}
	}
}

// site is a server under test, and what is behind it.
type site struct {
	*stage

	addr   string
	store  reprise.Store      // a handle as the server's, without faults
	faults *faultstore.Faults // what happens to the server's calls, and which ones it made

	arrived chan struct{} // a value for each handler that has an effect
	opened  chan struct{} // closed by open: handlers with an effect go on
	once    sync.Once
}

// serve starts a server over a handle of its own on the fixture's store. A program's effect holds its handler until the case
// opens the site.
func (s *stage) serve(o Options) *site {
	s.Helper()
	inner := s.fixture.Open(s)
	at := &site{stage: s, store: inner, arrived: make(chan struct{}, 1000), opened: make(chan struct{})}
	o.Store, at.faults = faultstore.New(inner)
	o.Effect = func(context.Context, string) error {
		at.arrived <- struct{}{}
		<-at.opened
		return nil
	}
	s.Cleanup(at.leave) // after the server has stopped
	at.addr = s.fixture.Serve(s, o)
	s.Cleanup(func() { // before the server stops, which waits for its handlers
		at.open()
		at.faults.Close()
		s.client.CloseIdleConnections()
	})
	return at
}

// leave ends what an Atomic store holds open for the claims of the server: transactions whose completion a fault kept from it.
func (at *site) leave() {
	if !at.fixture.Atomic {
		return
	}
	for _, call := range at.faults.Calls() {
		if call.Op == faultstore.Claim {
			_ = at.store.Release(context.WithoutCancel(at.Context()), call.ID, call.Owner) // of most there is nothing left
		}
	}
}

// open lets the handlers that an effect holds go on, and those that come later.
func (at *site) open() { at.once.Do(func() { close(at.opened) }) }

// holds waits until one more handler is held by its effect.
func (at *site) holds() {
	at.Helper()
	limit := time.NewTimer(at.fixture.Patience)
	defer limit.Stop()
	select {
	case <-at.arrived:
	case <-limit.C:
		at.Fatalf("no handler started within %v", at.fixture.Patience)
	}
}

// executions asks the server how often the operation ran in it, and how many of its runs have not ended.
func (at *site) executions() (n, inFlight int) {
	at.Helper()
	a, err := at.try(call{method: "GET", target: "/executions/" + theOp, tenant: at.tenant})
	var got struct {
		Executions *int `json:"executions"`
		InFlight   *int `json:"in_flight"`
	}
	if err == nil {
		err = json.Unmarshal([]byte(a.body), &got)
	}
	if err != nil || got.Executions == nil || got.InFlight == nil {
		at.Fatalf("how often it ran: %v, %v", a, err)
	}
	return *got.Executions, *got.InFlight
}

// ran demands that the operation ran n times in the server so far.
func (at *site) ran(n int) {
	at.Helper()
	if got, _ := at.executions(); got != n {
		at.Fatalf("the handler ran %d times, want %d", got, n)
	}
}

// untouched demands that the server has not asked its store for anything.
func (at *site) untouched() {
	at.Helper()
	if calls := at.faults.Calls(); len(calls) > 0 {
		at.Fatalf("the store was asked to %v, and %d times more; want no call", calls[0].Op, len(calls)-1)
	}
}

// pending is a call on its way.
type pending struct {
	stage *stage
	done  chan struct{}
	got   answer
	err   error
}

// begin sends a call and does not wait for its answer.
func (at *site) begin(c call) *pending {
	p := &pending{stage: at.stage, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		p.got, p.err = at.try(c)
	}()
	return p
}

// answer waits for the answer, which has to come.
func (p *pending) answer() answer {
	p.stage.Helper()
	<-p.done
	if p.err != nil {
		p.stage.Fatalf("no answer: %v", p.err)
	}
	return p.got
}

// answered reports whether there is an answer already.
func (p *pending) answered() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}
