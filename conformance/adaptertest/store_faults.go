package adaptertest

import (
	"fmt"
	"time"

	"github.com/reprise-go/reprise/conformance"

	"github.com/reprise-go/reprise/conformance/faultstore"
	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
)

// hasty is an engine that gives a store little time, so that a case need not wait long
// for it to give up: enough for the calls that must succeed on a busy machine.
var hasty = reprise.Config{ClaimTimeout: 3 * time.Second, CompleteTimeout: 3 * time.Second}

// hastyEnd is hasty for a case whose completions and releases fail as long as the client
// waits, and so use all of their time.
var hastyEnd = reprise.Config{ClaimTimeout: hasty.ClaimTimeout, CompleteTimeout: time.Second}

// failure is an error of a store of a class.
func failure(class error) error { return fmt.Errorf("%w: the case says so", class) }

var storeFaultCases = []testCase{
	{
		conformance.Case{ID: "R40d", Rule: "With FailOpen the handler runs unprotected when the store is unreachable, and the response says so.", Source: "profile"},
		func(e *env) {
			srv := e.serve(Options{Engine: hasty, Guard: protocol.Config{FailOpen: true}})
			c := e.post(created)
			stream := e.post(streamed).freshKey()
			runs := 0
			for _, class := range []error{store.ErrUnavailable, store.ErrUnknown} {
				srv.faults.Always(faultstore.Claim, faultstore.FailBefore(failure(class)))
				for _, c := range []call{c, stream} {
					a := srv.send(c)
					runs++
					if a.exec() != runs || a.value(protocol.FieldStatus) != "unprotected" || a.value(protocol.FieldReplayed) != "" {
						srv.Errorf("answered %v", a)
					}
				}
			}
			srv.faults.Clear()
			srv.protects(c)
		},
	},
	{
		conformance.Case{ID: "R41a", Rule: "When the store fails after the handler ran, the client gets the handler's response, marked as unrecorded.", Source: "profile"},
		func(e *env) {
			srv := e.serve(Options{Engine: hastyEnd})
			srv.faults.Always(faultstore.Complete, faultstore.FailBefore(failure(store.ErrUnavailable)))
			c := e.post(created)
			a := srv.send(c)
			if a.status != 201 || a.body != created.Body || a.value("Location") != "/orders/1" || a.value(protocol.FieldStatus) != "unrecorded" {
				srv.Errorf("answered %v", a)
			}
			srv.refuses(c, protocol.CodeInProgress) // an unknown outcome must not run again
			srv.ran(1)
		},
	},
	{
		conformance.Case{ID: "R41d", Rule: "A completion whose reply is lost is repeated: the response is recorded and has no marker.", Source: "profile"},
		func(e *env) {
			srv := e.serve(Options{})
			srv.faults.Next(faultstore.Complete, faultstore.LoseReply())
			c := e.post(created)
			srv.replays(c, srv.run(c))
			srv.ran(1)
		},
	},
	{
		conformance.Case{ID: "R41f", Rule: "When another process took over and completed, the client gets the response that it recorded.", Source: "profile"},
		func(e *env) {
			one, two := e.serve(Options{}), e.serve(Options{})
			c := e.post(held)
			first := one.begin(c)
			one.waitForHandler()
			one.forgetClaims()
			kept := two.run(c.does(created))
			one.releaseHandlers()
			one.wantReplay(first.answer(), kept)
			one.replays(c, kept)
		},
	},
}

// protects waits until a recovered store is called again, and demands that the response
// is replayed.
func (srv *server) protects(c call) {
	srv.Helper()
	var a answer
	srv.eventually("an answer that is protected", func() bool {
		a = srv.send(c.freshKey())
		return a.value(protocol.FieldStatus) != "unprotected"
	})
	c = c.freshKey()
	a = srv.send(c)
	srv.wantRun(a)
	srv.replays(c, a)
}

// forgetClaims releases at the store every claim that the server made.
func (srv *server) forgetClaims() {
	srv.Helper()
	for _, call := range srv.faults.Calls() {
		if call.Op != faultstore.Claim {
			continue
		}
		if err := srv.store.Release(srv.Context(), call.ID, call.Owner); err != nil {
			srv.Fatalf("release at the store: %v", err)
		}
	}
}
