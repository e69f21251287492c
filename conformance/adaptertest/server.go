package adaptertest

import (
	"cmp"
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/reprise-go/reprise/conformance/faultstore"
	"github.com/reprise-go/reprise/core/store"
)

// server is a server under test, with the store behind it.
type server struct {
	*env

	addr   string
	store  store.Store        // a handle as the server's, without faults
	faults *faultstore.Faults // the script and the log of the server's calls

	arrived  chan struct{} // a value for each handler that has an effect
	released chan struct{} // closed by releaseHandlers
	once     sync.Once
}

// serve starts a server over a separate handle on the fixture's store. A handler with an
// effect is held until releaseHandlers.
func (e *env) serve(o Options) *server {
	e.Helper()
	inner := e.fixture.Open(e)
	srv := &server{env: e, store: inner, arrived: make(chan struct{}, 1000), released: make(chan struct{})}
	o.Store, srv.faults = faultstore.New(inner)
	if o.Guard.Transactional {
		o.Store = Transacting(o.Store)
	}
	o.Engine.ClaimTimeout = cmp.Or(o.Engine.ClaimTimeout, 8*time.Second) // a busy machine breaks no rule
	o.Engine.CompleteTimeout = cmp.Or(o.Engine.CompleteTimeout, 8*time.Second)
	o.Effect = func(context.Context, string) error {
		srv.arrived <- struct{}{}
		<-srv.released
		return nil
	}
	srv.addr = e.fixture.Serve(e, o)
	e.Cleanup(func() { // before the server stops, which waits for its handlers
		srv.releaseHandlers()
		srv.faults.Close()
	})
	return srv
}

// releaseHandlers lets the handlers that are held go on, and later ones pass.
func (srv *server) releaseHandlers() { srv.once.Do(func() { close(srv.released) }) }

// waitForHandler waits until one more handler is held.
func (srv *server) waitForHandler() {
	srv.Helper()
	limit := time.NewTimer(srv.fixture.Patience)
	defer limit.Stop()
	select {
	case <-srv.arrived:
	case <-limit.C:
		srv.Fatalf("no handler started within %v", srv.fixture.Patience)
	}
}

// executions asks the server how often it ran the operation. The server also tells how
// many runs have not ended.
func (srv *server) executions() int {
	srv.Helper()
	a := srv.send(call{method: "GET", target: "/executions/" + opName, tenant: srv.tenant})
	var got struct {
		Executions *int `json:"executions"`
		InFlight   *int `json:"in_flight"`
	}
	if err := json.Unmarshal([]byte(a.body), &got); err != nil || got.Executions == nil || got.InFlight == nil {
		srv.Fatalf("the server does not tell its executions: %v", a)
	}
	return *got.Executions
}

// ran demands that the operation ran n times in the server so far.
func (srv *server) ran(n int) {
	srv.Helper()
	if got := srv.executions(); got != n {
		srv.Fatalf("the handler ran %d times, want %d", got, n)
	}
}

// wantNoStoreCall fails if the server called its store.
func (srv *server) wantNoStoreCall() {
	srv.Helper()
	for _, op := range []faultstore.Op{faultstore.Claim, faultstore.Renew, faultstore.Complete, faultstore.Release, faultstore.Unknown} {
		if n := srv.faults.Count(op); n > 0 {
			srv.Fatalf("the server made %d calls of %v on its store; want none", n, op)
		}
	}
}
