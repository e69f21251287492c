package adaptertest

import (
	"fmt"
	"strings"
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

// promptly is how long a response may take whose store hangs: the engine's time for it,
// and plenty for everything else. It is less than the default of Fixture.Patience.
const promptly = 8 * time.Second

var storeFaultCases = []testCase{
	{
		conformance.Case{ID: "R40a", Rule: "When the store is unreachable nothing runs, and the client gets 503 with Retry-After.", Source: "profile"},
		func(e *env) {
			srv := e.serve(Options{Engine: hasty})
			c := e.post(created)
			for _, class := range []error{store.ErrUnavailable, store.ErrUnknown, store.ErrBusy, store.ErrFull, store.ErrMisconfigured} {
				srv.faults.Always(faultstore.Claim, faultstore.FailBefore(failure(class)))
				srv.refuses(c, protocol.CodeStoreUnavailable)
			}
			srv.ran(0)
			srv.faults.Clear()
			srv.replays(c, srv.run(c))
			srv.ran(1)
		},
	},
	{
		conformance.Case{ID: "R40b", Rule: "A claim at a store that hangs ends within ClaimTimeout, and nothing runs.", Source: "profile"},
		func(e *env) {
			srv := e.serve(Options{Engine: hasty})
			srv.faults.Always(faultstore.Claim, faultstore.Hang())
			start := time.Now()
			srv.refuses(e.post(created), protocol.CodeStoreUnavailable)
			if took := time.Since(start); took > promptly {
				srv.Errorf("the answer took %v", took)
			}
			srv.ran(0)
		},
	},
	{
		conformance.Case{ID: "R40c", Rule: "A claim whose reply is lost is repeated, and the handler runs once.", Source: "profile"},
		func(e *env) {
			srv := e.serve(Options{})
			srv.faults.Next(faultstore.Claim, faultstore.LoseReply())
			c := e.post(created)
			srv.replays(c, srv.run(c))
			srv.ran(1)
		},
	},
	{
		conformance.Case{ID: "R40d", Rule: "With FailOpen the handler runs unprotected when the store is unreachable, and the response says so.", Source: "profile", Needs: []conformance.Need{conformance.Leases}},
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
					if a.exec() != runs || a.value(srv.control.Status) != "unprotected" || a.value(srv.control.Replayed) != "" {
						srv.Errorf("answered %v", a)
					}
				}
			}
			srv.faults.Clear()
			srv.protects(c)
		},
	},
	{
		conformance.Case{ID: "R40f", Rule: "Of simultaneous duplicates that would run unprotected, one runs, and the others get 409 in-progress.", Source: "profile", Needs: []conformance.Need{conformance.Leases}},
		func(e *env) {
			srv := e.serve(Options{Engine: hasty, Guard: protocol.Config{FailOpen: true}})
			srv.faults.Always(faultstore.Claim, faultstore.FailBefore(failure(store.ErrUnavailable)))
			c := e.post(held)
			ran, refused := together(c, srv)
			if len(ran) != 1 || len(refused) != crowd-1 || ran[0].value(srv.control.Status) != "unprotected" {
				srv.Fatalf("%d ran and %d were refused, want 1 and %d", len(ran), len(refused), crowd-1)
			}
			srv.ran(1)
		},
	},
	{
		conformance.Case{ID: "R40g", Rule: "A claim that could not reach the store opens its own request and no other: a key that completed is replayed.", Source: "trap: a failed claim that opened the engine for a while", Needs: []conformance.Need{conformance.Leases}},
		func(e *env) {
			srv := e.serve(Options{Engine: hasty, Guard: protocol.Config{FailOpen: true}})
			c := e.post(created)
			first := srv.run(c)
			srv.faults.Always(faultstore.Claim, faultstore.FailBefore(failure(store.ErrUnavailable)))
			if a := srv.send(e.post(created).freshKey()); a.value(srv.control.Status) != "unprotected" {
				srv.Fatalf("answered %v", a)
			}
			srv.faults.Clear()
			srv.replays(c, first)
			srv.ran(2)
		},
	},
	{
		conformance.Case{ID: "R40e", Rule: "The handler never runs unprotected for any other reason.", Source: "profile", Needs: []conformance.Need{conformance.Leases}},
		func(e *env) {
			srv := e.serve(Options{Engine: hasty, Guard: protocol.Config{FailOpen: true}})
			refuses := func(class error, code protocol.Code) {
				srv.faults.Always(faultstore.Claim, faultstore.FailBefore(failure(class)))
				srv.refuses(e.post(created), code)
			}
			refuses(store.ErrCorrupt, protocol.CodeRecordCorrupt)
			for _, class := range []error{store.ErrFull, store.ErrNotReplicated, store.ErrMisconfigured, store.ErrBusy} {
				refuses(class, protocol.CodeStoreUnavailable)
			}
			srv.faults.Always(faultstore.Claim, faultstore.Panic("a bug in a decorator")) // the store was reached
			srv.refuses(e.post(created), protocol.CodeStoreUnavailable)
			srv.ran(0)
		},
	},
	{
		conformance.Case{ID: "R41a", Rule: "When the store fails after the handler ran, the client gets the handler's response, marked as unrecorded.", Source: "profile", Needs: []conformance.Need{conformance.Leases}},
		func(e *env) {
			srv := e.serve(Options{Engine: hastyEnd})
			srv.faults.Always(faultstore.Complete, faultstore.FailBefore(failure(store.ErrUnavailable)))
			c := e.post(created)
			a := srv.send(c)
			if a.status != 201 || a.body != created.Body || a.value("Location") != "/orders/1" || a.value(srv.control.Status) != "unrecorded" {
				srv.Errorf("answered %v", a)
			}
			srv.refuses(c, protocol.CodeInProgress) // an unknown outcome must not run again
			srv.ran(1)
		},
	},
	{
		conformance.Case{ID: "R41b", Rule: "A response that was not recorded in time is recorded as soon as the store accepts it.", Source: "profile", Needs: []conformance.Need{conformance.Leases}},
		func(e *env) {
			srv := e.serve(Options{Engine: hastyEnd})
			srv.faults.Always(faultstore.Complete, faultstore.FailBefore(failure(store.ErrUnavailable)))
			c := e.post(created)
			first := srv.send(c)
			srv.faults.Clear()
			again := srv.wantReplayAfterLeaving(c)
			if again.status != first.status || again.body != first.body || again.value(srv.control.Status) != "" {
				srv.Errorf("replayed %v, of %v", again, first)
			}
			srv.ran(1)
		},
	},
	{
		conformance.Case{ID: "R41c", Rule: "A store that hangs does not hold the response back.", Source: "trap: a hanging store holding the response back", Needs: []conformance.Need{conformance.Leases}},
		func(e *env) {
			srv := e.serve(Options{Engine: hastyEnd})
			srv.faults.Always(faultstore.Complete, faultstore.Hang())
			start := time.Now()
			if a := srv.send(e.post(created)); a.status != 201 || a.value(srv.control.Status) != "unrecorded" {
				srv.Errorf("answered %v", a)
			}
			if took := time.Since(start); took > promptly {
				srv.Errorf("the answer took %v", took)
			}
		},
	},
	{
		conformance.Case{ID: "R41d", Rule: "A completion whose reply is lost is repeated: the response is recorded and has no marker.", Source: "profile", Needs: []conformance.Need{conformance.Leases}},
		func(e *env) {
			srv := e.serve(Options{})
			srv.faults.Next(faultstore.Complete, faultstore.LoseReply())
			c := e.post(created)
			srv.replays(c, srv.run(c))
			srv.ran(1)
		},
	},
	{
		conformance.Case{ID: "R41e", Rule: "A release that the store does not accept at once is repeated, so that retries after a failure are not refused for long.", Source: "trap: a 5xx followed by 409s", Needs: []conformance.Need{conformance.Leases}},
		func(e *env) {
			srv := e.serve(Options{Engine: hastyEnd})
			srv.faults.Always(faultstore.Release, faultstore.FailBefore(failure(store.ErrUnavailable)))
			c := e.post(Program{Status: 503, Body: "failed"})
			if a := srv.run(c); a.status != 503 || a.body != "failed" {
				srv.Errorf("answered %v", a)
			}
			srv.faults.Clear()
			last := c.does(created)
			srv.eventually("the release", func() bool { return srv.send(last).status == 201 })
			srv.ran(2)
		},
	},
	{
		conformance.Case{ID: "R41f", Rule: "When another process took over and completed, the client gets the response that it recorded.", Source: "profile", Needs: []conformance.Need{conformance.Leases}},
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
	{
		conformance.Case{ID: "R41g", Rule: "When another process took over and still runs, the client of the former owner gets 409.", Source: "profile", Needs: []conformance.Need{conformance.Leases}},
		func(e *env) {
			for policy, code := range inOrder(map[reprise.Preset]protocol.Code{
				reprise.Recoverable: protocol.CodeInProgress, reprise.AtMostOnce: protocol.CodeOutcomeUnknown,
			}) {
				srv := e.serve(Options{Guard: protocol.Config{Preset: policy}})
				c := e.post(held).freshKey()
				first := srv.begin(c)
				srv.waitForHandler()
				srv.forgetClaims()
				srv.claims(c, store.ClaimRequest{})
				srv.releaseHandlers()
				srv.wantProblem(first.answer(), c, code)
			}
		},
	},
	{
		conformance.Case{ID: "R41h", Rule: "When the record is gone and no other owner has the key, the response is recorded again.", Source: "profile", Needs: []conformance.Need{conformance.Leases}},
		func(e *env) {
			srv := e.serve(Options{})
			c := e.post(held)
			first := srv.begin(c)
			srv.waitForHandler()
			srv.forgetClaims()
			srv.releaseHandlers()
			srv.wantRun(first.answer())
			srv.replays(c, first.answer())
			srv.ran(1)
		},
	},
	{
		conformance.Case{ID: "R41i", Rule: "Where effects commit with the response and the outcome of the commit is unknown, the client gets 503, and its retry finds out.", Source: "trap: commit failing after success", Needs: []conformance.Need{conformance.AtomicClaims}},
		func(e *env) {
			srv := e.serve(Options{Engine: hasty})
			srv.faults.Next(faultstore.Complete, faultstore.LoseReply())
			c := e.post(created)
			srv.wantProblem(srv.send(c), c, protocol.CodeStoreUnavailable)
			again := srv.send(c)
			if again.status != 201 || again.body != created.Body || again.value(srv.control.Replayed) != "true" {
				srv.Errorf("the client that comes back is answered %v", again)
			}
			srv.ran(1)
		},
	},
	{
		conformance.Case{ID: "R41j", Rule: "Where effects commit with the response and were rolled back, the client gets 503 not-applied, and its retry runs.", Source: "trap: commit failing after success", Needs: []conformance.Need{conformance.AtomicClaims}},
		func(e *env) {
			srv := e.serve(Options{Engine: hasty})
			srv.faults.Next(faultstore.Complete, faultstore.FailBefore(failure(store.ErrNotApplied)))
			c := e.post(created)
			srv.wantProblem(srv.send(c), c, protocol.CodeNotApplied)
			srv.forgetClaims() // a store that reports this has released the claim already
			srv.replays(c, srv.run(c))
			srv.ran(2)
		},
	},
	{
		conformance.Case{ID: "R42a", Rule: "A record that the store cannot read runs nothing.", Source: "profile"},
		func(e *env) {
			srv := e.serve(Options{})
			srv.faults.Always(faultstore.Claim, faultstore.FailBefore(failure(store.ErrCorrupt)))
			c := e.post(created)
			for range 2 {
				srv.refuses(c, protocol.CodeRecordCorrupt)
			}
			srv.ran(0)
		},
	},
	{
		conformance.Case{ID: "R42b", Rule: "A stored response that cannot be decoded, because it is damaged or of a later version, is not served in part, and nothing runs.", Source: "profile"},
		func(e *env) {
			srv := e.serve(Options{})
			for what, payload := range inOrder(map[string]string{
				"nothing": "", "one byte": "\x01", "a later version": "\x02" + strings.Repeat("\x00", 40), "text": "HTTP/1.1 200 OK\r\n\r\n",
				"zeros": strings.Repeat("\x00", 64), "a wrong checksum": "\x01\x00\x00\xc8\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\xde\xad\xbe\xef",
				"large": strings.Repeat("\xff", 100_000),
			}) {
				c := e.post(created).freshKey()
				srv.claims(c, store.ClaimRequest{}).completes(payload)
				a := srv.send(c)
				if a.status != 500 {
					srv.Errorf("a record with %s is answered %v", what, a)
				}
				srv.wantProblem(a, c, protocol.CodeRecordCorrupt)
			}
			srv.ran(0)
			srv.run(e.post(created))
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
		return a.value(srv.control.Status) != "unprotected"
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
