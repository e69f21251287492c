package adaptertest

import (
	"slices"
	"strings"
	"time"

	"github.com/reprise-go/reprise/conformance"

	"github.com/reprise-go/reprise/core/protocol"
)

// held is a program whose handler is held until the case releases the handlers of its
// server.
var held = Program{Effect: true, Status: 201, Headers: []Pair{{"Location", "/orders/1"}}, Body: "held"}

// crowd is how many requests are sent at once.
const crowd = 12

var concurrencyCases = []testCase{
	{
		conformance.Case{ID: "R20c", Rule: "Of many identical requests to two processes at once, one runs.", Source: "draft 2.6"},
		func(e *env) {
			one, two := e.serve(Options{}), e.serve(Options{})
			c := e.post(held)
			ran, refused := together(c, one, two)
			if len(ran) != 1 || len(refused) != crowd-1 {
				one.Fatalf("%d ran and %d were refused, want 1 and %d", len(ran), len(refused), crowd-1)
			}
			for _, srv := range []*server{one, two} {
				srv.replays(c, ran[0])
			}
			first, _ := one.executions()
			second, _ := two.executions()
			if first+second != 1 {
				one.Errorf("the handler ran %d times in one process and %d in the other", first, second)
			}
		},
	},
	{
		conformance.Case{ID: "R20d", Rule: "Duplicates that wait get the replay when the first request ends.", Source: "profile"},
		func(e *env) {
			srv := e.serve(Options{Guard: protocol.Config{Wait: e.fixture.Patience}})
			c := e.post(held)
			first := srv.begin(c)
			srv.waitForHandler()
			var others []*pending
			for range 4 {
				others = append(others, srv.begin(c))
			}
			srv.wantWaiting(others)
			srv.releaseHandlers()
			for _, p := range others {
				srv.wantReplay(p.answer(), first.answer())
			}
			srv.ran(1)
		},
	},
	{
		conformance.Case{ID: "R20e", Rule: "When duplicates wait and the first request is released, exactly one of them runs, and the others get its response.", Source: "profile"},
		func(e *env) {
			srv := e.serve(Options{Guard: protocol.Config{Wait: e.fixture.Patience}})
			failing := held
			failing.Status = 503
			c := e.post(failing)
			first := srv.begin(c)
			srv.waitForHandler()
			var others []*pending
			for range 4 { // their program is no part of the fingerprint
				others = append(others, srv.begin(c.does(Program{Status: 201, Body: "second"})))
			}
			srv.wantWaiting(others)
			srv.releaseHandlers()
			if a := first.answer(); a.status != 503 {
				srv.Errorf("the first is answered %v", a)
			}
			marked := 0
			for _, p := range others {
				a := p.answer()
				if a.status != 201 || a.body != "second" || a.exec() != 2 {
					srv.Errorf("a waiter is answered %v", a)
				}
				marked += len(a.values(protocol.FieldReplayed))
			}
			if marked != len(others)-1 {
				srv.Errorf("%d of %d waiters got a replay, want all but one", marked, len(others))
			}
			srv.ran(2)
		},
	},
	{
		conformance.Case{ID: "R21", Rule: "Different keys never affect each other, even while one of them is in progress.", Source: "draft 2.2"},
		func(e *env) {
			srv := e.serve(Options{})
			first := srv.begin(e.post(held))
			srv.waitForHandler()
			other := e.post(created).freshKey()
			answer := srv.run(other)
			srv.replays(other, answer)
			if first.answered() {
				srv.Error("the request that is held was answered")
			}
			srv.releaseHandlers()
			srv.wantRun(first.answer())
			srv.ran(2)
		},
	},
	{
		conformance.Case{ID: "R22b", Rule: "A different request with the same key is refused after the first completed, and its record is untouched.", Source: "draft 2.6"},
		func(e *env) {
			srv := e.serve(Options{})
			c := e.post(created)
			first := srv.run(c)
			for range 3 {
				srv.refuses(c.withBody("another"), protocol.CodeKeyReused)
				srv.replays(c, first)
			}
			srv.ran(1)
		},
	},
	{
		conformance.Case{ID: "R22c", Rule: "A different request with the same key is refused by another process too, while the first runs.", Source: "draft 2.6"},
		func(e *env) {
			one, two := e.serve(Options{}), e.serve(Options{})
			c := e.post(held)
			first := one.begin(c)
			one.waitForHandler()
			two.refuses(c.withBody("another"), protocol.CodeKeyReused)
			one.releaseHandlers()
			two.replays(c, first.answer())
			two.ran(0)
		},
	},
	{
		conformance.Case{ID: "R23a", Rule: "A client that leaves while its request runs stops neither the run nor the record.", Source: "profile"},
		func(e *env) {
			srv := e.serve(Options{})
			p := Program{Effect: true, DelayMS: 50, Echo: true, Status: 201} // the delay ends when the context is cancelled
			c := e.post(p)
			w := srv.dial()
			w.write(c.bytes())
			srv.waitForHandler()
			w.close()
			srv.releaseHandlers()
			got := srv.wantReplayAfterLeaving(c)
			if got.status != 201 || got.exec() != 1 {
				srv.Errorf("answered %v", got)
			}
			if cause := srv.echo(got).ContextCause; cause != "" {
				srv.Errorf("the handler was told to stop: %s", cause)
			}
			srv.ran(1)
		},
	},
	{
		conformance.Case{ID: "R23b", Rule: "A client that leaves before the first byte of a stream gets all of it on its retry.", Source: "trap: client gone before the first byte"},
		func(e *env) {
			srv := e.serve(Options{})
			p := Program{Effect: true, Status: 200, Chunks: []Chunk{{Body: "one,"}, {Body: "two,"}, {Body: "three"}}}
			c := e.post(p)
			w := srv.dial()
			w.write(c.bytes())
			srv.waitForHandler()
			w.close()
			srv.releaseHandlers()
			if got := srv.wantReplayAfterLeaving(c); got.status != 200 || got.body != "one,two,three" {
				srv.Errorf("answered %v", got)
			}
			srv.ran(1)
		},
	},
	{
		conformance.Case{ID: "R23c", Rule: "A client that leaves while a large response is sent gets all of it on its retry.", Source: "profile"},
		func(e *env) {
			srv := e.serve(Options{Guard: protocol.Config{Limits: protocol.Limits{ResponseBody: 16 << 20}}})
			c := e.post(Program{Status: 200, BodySize: 8 << 20, Headers: []Pair{{"Content-Type", "x/y"}}})
			w := srv.dial()
			w.write(c.bytes())
			w.await("HTTP/1.1 200 OK\r\n")
			w.close()
			got := srv.wantReplayAfterLeaving(c)
			if got.body != string(PatternBody(8<<20)) {
				srv.Errorf("the replay has %d bytes that are not those of the first answer", len(got.body))
			}
			srv.ran(1)
		},
	},
}

// together sends a call many times at once, to the servers in turn. When each call was
// refused or its handler is held, it releases the handlers.
func together(c call, servers ...*server) (ran, refused []answer) {
	servers[0].Helper()
	calls := make([]*pending, crowd)
	for i := range calls {
		calls[i] = servers[i%len(servers)].begin(c)
	}
	servers[0].eventually("an answer to all calls that do not run", func() bool {
		n := 0
		for _, p := range calls {
			if p.answered() {
				n++
			}
		}
		for _, srv := range servers {
			n += len(srv.arrived)
		}
		return n == crowd
	})
	for _, srv := range servers {
		srv.releaseHandlers()
	}
	for _, p := range calls {
		if a := p.answer(); a.status == 409 {
			refused = append(refused, a)
		} else {
			ran = append(ran, a)
		}
	}
	return ran, refused
}

// wantWaiting fails if one of the calls is answered within the time that a refusal takes.
func (srv *server) wantWaiting(calls []*pending) {
	srv.Helper()
	srv.advance(100 * time.Millisecond)
	if i := slices.IndexFunc(calls, (*pending).answered); i >= 0 {
		srv.Fatalf("a duplicate that should wait is answered %v", calls[i].answer())
	}
}

// sendUntilDone repeats a call until the first request no longer runs.
func (srv *server) sendUntilDone(c call) answer {
	srv.Helper()
	var got answer
	srv.eventually("the end of the first request", func() bool {
		got = srv.send(c)
		return got.status != 409 || !strings.Contains(got.body, string(protocol.CodeInProgress))
	})
	return got
}

// wantReplayAfterLeaving repeats a call whose first client left until the first request
// no longer runs, and wants a replay.
func (srv *server) wantReplayAfterLeaving(c call) answer {
	srv.Helper()
	got := srv.sendUntilDone(c)
	if got.value(protocol.FieldReplayed) != "true" {
		srv.Fatalf("the client that comes back is answered %v", got)
	}
	return got
}
