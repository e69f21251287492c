package adaptertest

import (
	"slices"
	"strings"
	"time"

	"github.com/reprise-go/reprise/conformance"

	"github.com/reprise-go/reprise/core/protocol"
)

// held is a program whose handler is held until the case opens its site.
var held = Program{Effect: true, Status: 201, Headers: []Pair{{"Location", "/orders/1"}}, Body: "held"}

// crowd is how many requests are sent at once.
const crowd = 12

var concurrencyCases = []testCase{
	{
		conformance.Case{ID: "R20a", Rule: "Of many identical requests at once one runs; the others are told that it does, and when to come back.", Source: "draft 2.6"},
		func(s *stage) {
			at := s.serve(Options{})
			c := s.post(held)
			runs, refused := together(c, at)
			if len(runs) != 1 || len(refused) != crowd-1 {
				at.Fatalf("%d ran and %d were refused, want 1 and %d", len(runs), len(refused), crowd-1)
			}
			for _, a := range refused {
				at.wantProblem(a, c, protocol.CodeInProgress)
			}
			at.wantRun(runs[0])
			at.replays(c, runs[0])
			at.ran(1)
		},
	},
	{
		conformance.Case{ID: "R20b", Rule: "Being told that a request is in progress is not stored: after its end everybody gets its answer.", Source: "draft 2.6"},
		func(s *stage) {
			at := s.serve(Options{})
			c := s.post(held)
			first := at.begin(c)
			at.holds()
			for range 3 {
				at.refuses(c, protocol.CodeInProgress)
			}
			at.open()
			for range 3 {
				at.replays(c, first.answer())
			}
			at.ran(1)
		},
	},
	{
		conformance.Case{ID: "R20c", Rule: "Of many identical requests at once to two processes one runs.", Source: "draft 2.6"},
		func(s *stage) {
			one, two := s.serve(Options{}), s.serve(Options{})
			c := s.post(held)
			ran, refused := together(c, one, two)
			if len(ran) != 1 || len(refused) != crowd-1 {
				one.Fatalf("%d ran and %d were refused, want 1 and %d", len(ran), len(refused), crowd-1)
			}
			for _, at := range []*site{one, two} {
				at.replays(c, ran[0])
			}
			first, _ := one.executions()
			second, _ := two.executions()
			if first+second != 1 {
				one.Errorf("the handler ran %d times in one process and %d in the other", first, second)
			}
		},
	},
	{
		conformance.Case{ID: "R20d", Rule: "Where duplicates wait, they get the replay when the first has ended.", Source: "profile"},
		func(s *stage) {
			at := s.serve(Options{Guard: protocol.Config{Wait: s.fixture.Patience}})
			c := s.post(held)
			first := at.begin(c)
			at.holds()
			var others []*pending
			for range 4 {
				others = append(others, at.begin(c))
			}
			at.settle(others)
			at.open()
			for _, p := range others {
				at.wantReplay(p.answer(), first.answer())
			}
			at.ran(1)
		},
	},
	{
		conformance.Case{ID: "R20e", Rule: "Where duplicates wait and the first is released, exactly one of them runs, and the others get its answer.", Source: "profile"},
		func(s *stage) {
			at := s.serve(Options{Guard: protocol.Config{Wait: s.fixture.Patience}})
			failing := held
			failing.Status = 503
			c := s.post(failing)
			first := at.begin(c)
			at.holds()
			var others []*pending
			for range 4 { // their program is no part of the fingerprint
				others = append(others, at.begin(c.does(Program{Status: 201, Body: "second"})))
			}
			at.settle(others)
			at.open()
			if a := first.answer(); a.status != 503 {
				at.Errorf("the first is answered %v", a)
			}
			marked := 0
			for _, p := range others {
				a := p.answer()
				if a.status != 201 || a.body != "second" || a.exec() != 2 {
					at.Errorf("a waiter is answered %v", a)
				}
				marked += len(a.values(replayedField))
			}
			if marked != len(others)-1 {
				at.Errorf("%d of %d waiters got a replay, want all but one", marked, len(others))
			}
			at.ran(2)
		},
	},
	{
		conformance.Case{ID: "R20f", Rule: "A duplicate that has waited long enough is told that the first is in progress.", Source: "profile"},
		func(s *stage) {
			at := s.serve(Options{Guard: protocol.Config{Wait: 50 * time.Millisecond}})
			c := s.post(held)
			at.begin(c)
			at.holds()
			at.refuses(c, protocol.CodeInProgress)
		},
	},
	{
		conformance.Case{ID: "R21", Rule: "Different keys never affect each other, one being held included.", Source: "draft 2.2"},
		func(s *stage) {
			at := s.serve(Options{})
			first := at.begin(s.post(held))
			at.holds()
			other := s.post(created).freshKey()
			answer := at.run(other)
			at.replays(other, answer)
			if first.answered() {
				at.Error("the request that is held was answered")
			}
			at.open()
			at.wantRun(first.answer())
			at.ran(2)
		},
	},
	{
		conformance.Case{ID: "R22a", Rule: "The same key with another request is refused while the first is in flight, and the first is not touched.", Source: "draft 2.6"},
		func(s *stage) {
			at := s.serve(Options{})
			c := s.post(held)
			first := at.begin(c)
			at.holds()
			at.refuses(c.withBody("another"), protocol.CodeKeyReused)
			at.refuses(c, protocol.CodeInProgress)
			at.open()
			at.replays(c, first.answer())
			at.ran(1)
		},
	},
	{
		conformance.Case{ID: "R22b", Rule: "The same key with another request is refused after the first has completed, and its record is not touched.", Source: "draft 2.6"},
		func(s *stage) {
			at := s.serve(Options{})
			c := s.post(created)
			first := at.run(c)
			for range 3 {
				at.refuses(c.withBody("another"), protocol.CodeKeyReused)
				at.replays(c, first)
			}
			at.ran(1)
		},
	},
	{
		conformance.Case{ID: "R22c", Rule: "The same key with another request is refused by another process, too, while the first is in flight.", Source: "draft 2.6"},
		func(s *stage) {
			one, two := s.serve(Options{}), s.serve(Options{})
			c := s.post(held)
			first := one.begin(c)
			one.holds()
			two.refuses(c.withBody("another"), protocol.CodeKeyReused)
			one.open()
			two.replays(c, first.answer())
			two.ran(0)
		},
	},
	{
		conformance.Case{ID: "R23a", Rule: "A client that leaves while its request runs stops neither the run nor the record.", Source: "profile"},
		func(s *stage) {
			at := s.serve(Options{})
			p := Program{Effect: true, DelayMS: 50, Echo: true, Status: 201} // the delay ends when the context is cancelled
			c := s.post(p)
			w := at.dial()
			w.write(c.bytes())
			at.holds()
			w.close()
			at.open()
			got := at.returned(c)
			if got.status != 201 || got.exec() != 1 {
				at.Errorf("answered %v", got)
			}
			if cause := at.echo(got).ContextCause; cause != "" {
				at.Errorf("the handler was told to stop: %s", cause)
			}
			at.ran(1)
		},
	},
	{
		conformance.Case{ID: "R23b", Rule: "A client that leaves before the first byte of a stream comes back for all of it.", Source: "trap: client gone before the first byte"},
		func(s *stage) {
			at := s.serve(Options{})
			p := Program{Effect: true, Status: 200, Chunks: []Chunk{{Body: "one,"}, {Body: "two,"}, {Body: "three"}}}
			c := s.post(p)
			w := at.dial()
			w.write(c.bytes())
			at.holds()
			w.close()
			at.open()
			if got := at.returned(c); got.status != 200 || got.body != "one,two,three" {
				at.Errorf("answered %v", got)
			}
			at.ran(1)
		},
	},
	{
		conformance.Case{ID: "R23c", Rule: "A client that leaves while a large answer is sent comes back for all of it.", Source: "profile"},
		func(s *stage) {
			at := s.serve(Options{Guard: protocol.Config{MaxResponseBody: 16 << 20}})
			c := s.post(Program{Status: 200, BodySize: 8 << 20, Headers: []Pair{{"Content-Type", "x/y"}}})
			w := at.dial()
			w.write(c.bytes())
			w.await("HTTP/1.1 200 OK\r\n")
			w.close()
			got := at.returned(c)
			if got.body != string(PatternBody(8<<20)) {
				at.Errorf("the replay has %d bytes that are not those of the first answer", len(got.body))
			}
			at.ran(1)
		},
	},
}

// together sends a call many times at once, to the sites in turn. When each was refused or is held by its effect, it lets
// those that are held go on.
func together(c call, sites ...*site) (ran, refused []answer) {
	sites[0].Helper()
	calls := make([]*pending, crowd)
	for i := range calls {
		calls[i] = sites[i%len(sites)].begin(c)
	}
	sites[0].eventually("an answer to all calls that do not run", func() bool {
		n := 0
		for _, p := range calls {
			if p.answered() {
				n++
			}
		}
		for _, at := range sites {
			n += len(at.arrived)
		}
		return n == crowd
	})
	for _, at := range sites {
		at.open()
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

// settle gives calls that shall wait the time in which they would be refused, and demands that none was answered.
func (at *site) settle(calls []*pending) {
	at.Helper()
	at.advance(100 * time.Millisecond)
	if i := slices.IndexFunc(calls, (*pending).answered); i >= 0 {
		at.Fatalf("a request that is to wait is answered %v", calls[i].answer())
	}
}

// settled sends a call until it is not in progress any more.
func (at *site) settled(c call) answer {
	at.Helper()
	var got answer
	at.eventually("the end of the first request", func() bool {
		got = at.send(c)
		return got.status != 409 || !strings.Contains(got.body, string(protocol.CodeInProgress))
	})
	return got
}

// returned sends a call whose first client has left until it is not in progress any more, and demands a replay.
func (at *site) returned(c call) answer {
	at.Helper()
	got := at.settled(c)
	if got.value(replayedField) != "true" {
		at.Fatalf("the client that comes back is answered %v", got)
	}
	return got
}
