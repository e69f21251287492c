package adaptertest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/reprise-go/reprise/conformance"

	"github.com/reprise-go/reprise/core/protocol"
)

// The traps that no rule names: each is a bug found in a library that serves idempotency keys.
var trapCases = []testCase{
	{
		conformance.Case{ID: "T1", Rule: "A request that no route matches behind the middleware is the framework's 404, at first and in a replay.", Source: "trap: unmatched route replayed as 200"},
		func(s *stage) {
			at := s.serve(Options{})
			c := s.post(created).withTarget("/u/nowhere")
			plain := at.send(c.withKeys())
			first := at.send(c)
			if first.status != 404 || first.status != plain.status || first.body != plain.body {
				at.Errorf("answered %v, without a key %v", first, plain)
			}
			at.replays(c, first)
		},
	},
	{
		conformance.Case{ID: "T2", Rule: "A status that an outer layer set is the one of the answer without a key, of the first one with it, and of its replay.", Source: "trap: status set by an outer middleware"},
		func(s *stage) {
			at := s.serve(Options{Outer: true})
			for _, p := range []Program{{}, {Body: "no status of its own"}, {Status: 201, Body: "its own"}} {
				c := s.post(p).freshKey()
				plain := at.run(c.withKeys())
				first := at.run(c)
				if first.status != plain.status || first.body != plain.body {
					at.Errorf("answered %v, without a key %v", first, plain)
				}
				at.replays(c, first)
			}
		},
	},
	{
		conformance.Case{ID: "T3", Rule: "Requests that follow on a connection change nothing of an earlier one: key, tenant, body and answer are copied.", Source: "trap: fasthttp buffers reused"},
		func(s *stage) {
			at := s.serve(Options{})
			w := at.dial()
			var calls []call
			var firsts []answer
			for i := range 20 {
				word := strings.Repeat(string(rune('a'+i)), 40+i)
				c := s.post(Program{Status: 201, Body: "answer " + word, Headers: []Pair{{"X-Word", word}, {"Location", "/" + word}}})
				c = c.withKeys("key-"+word).withTenant(s.tenant+word).withBody("body "+word).with("Content-Type", "text/"+word)
				a := w.ask(c)
				at.wantRun(a)
				calls, firsts = append(calls, c), append(firsts, a)
			}
			for i, c := range calls {
				at.wantReplay(w.ask(c), firsts[i])
			}
			at.ran(20)
		},
	},
	{
		conformance.Case{ID: "T4", Rule: "While a request is held, others on the same and on other connections change nothing of it.", Source: "trap: fasthttp buffers reused"},
		func(s *stage) {
			at := s.serve(Options{})
			p := echoes
			p.Effect = true
			c := s.post(p).withBody(strings.Repeat("the first body ", 40))
			first := at.begin(c)
			at.holds()
			w := at.dial()
			for i := range 50 {
				w.ask(s.post(created).freshKey().withBody(strings.Repeat("x", 10*i)).withTenant(s.tenant + strconv.Itoa(i)))
			}
			at.wantProblem(w.ask(c), c, protocol.CodeInProgress)
			at.open()
			at.wantBody(first.answer(), c.body)
			at.replays(c, first.answer())
		},
	},
	{
		conformance.Case{ID: "T5", Rule: "Many requests at once keep their answers apart.", Source: "trap: fasthttp buffers reused"},
		func(s *stage) {
			at := s.serve(Options{})
			var all sync.WaitGroup
			for i := range 16 {
				word := strings.Repeat(string(rune('A'+i)), 200)
				c := s.post(Program{Status: 201, Body: word, Headers: []Pair{{"X-Word", word}}}).freshKey().withBody(word)
				all.Go(func() {
					for n := range 8 {
						a, err := at.try(c)
						if err != nil || a.body != word || a.value("X-Word") != word || (a.value(replayedField) == "true") != (n > 0) {
							at.Errorf("request %d of %d is answered %v, %v", n, i, a, err)
							return
						}
					}
				})
			}
			all.Wait()
			at.ran(16)
		},
	},
	{
		conformance.Case{ID: "T6", Rule: "The fields with which the protocol speaks mean nothing when a client sends them.", Source: "trap: a client-sent control header"},
		func(s *stage) {
			at := s.serve(Options{})
			c := s.post(created).with(replayedField, "true").with(statusField, "unprotected").with(omittedField, "omitted")
			at.replays(s.post(created), at.run(c))
			at.run(c.withKeys())
			at.ran(2)
		},
	},
	{
		conformance.Case{ID: "T7", Rule: "An unkeyed request gets from the handler what it would get without the middleware: streams, trailers, errors, cuts.", Source: "profile"},
		func(s *stage) {
			at := s.serve(Options{})
			w := at.dial()
			if a := w.ask(s.post(streamed).withKeys()); a.body != streamedBody || a.value("X-Stream") != "1" {
				at.Errorf("a stream is answered %v", a)
			}
			p := created
			p.Trailers = []Pair{{"X-Checksum", "abc"}}
			if a := w.ask(s.post(p).withKeys()); a.body != p.Body || !slices.Equal(valuesOf(a.trailers, "X-Checksum"), []string{"abc"}) {
				at.Errorf("trailers are answered %v", a)
			}
			for _, p := range cutShort {
				at.dial().wantFailure(s.post(p).withKeys())
			}
			at.dial().wantFailure(s.post(Program{Behaviour: Panics}).withKeys())
			at.untouched()
		},
	},
	{
		conformance.Case{ID: "T8", Rule: "The server goes on after handlers that panic, abort and take connections, with a key and without.", Source: "profile"},
		func(s *stage) {
			at := s.serve(Options{})
			for i, p := range append([]Program{{Behaviour: Panics}, hijacked}, cutShort...) {
				for _, c := range []call{s.post(p).freshKey(), s.post(p).withKeys()} {
					w := at.dial()
					w.write(c.bytes())
					_, _ = w.tryRead()
				}
				c := s.post(created).freshKey()
				at.replays(c, at.run(c))
				if _, inFlight := at.executions(); inFlight > 0 {
					at.eventually(fmt.Sprintf("the end of the handlers of program %d", i), func() bool {
						_, n := at.executions()
						return n == 0
					})
				}
			}
		},
	},
}
