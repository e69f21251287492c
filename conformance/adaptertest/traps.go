package adaptertest

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/reprise-go/reprise/conformance"

	"github.com/reprise-go/reprise/core/protocol"
)

// The traps that no rule names: each is a bug found in a library that serves idempotency
// keys.
var trapCases = []testCase{
	{
		conformance.Case{ID: "T1", Rule: "A request behind the middleware that no route matches gets the framework's 404, first and as a replay.", Source: "trap: unmatched route replayed as 200"},
		func(e *env) {
			srv := e.serve(Options{})
			c := e.post(created).withTarget("/u/nowhere")
			plain := srv.send(c.withKeys())
			first := srv.send(c)
			if first.status != 404 || first.status != plain.status || first.body != plain.body {
				srv.Errorf("answered %v, without a key %v", first, plain)
			}
			srv.replays(c, first)
		},
	},
	{
		conformance.Case{ID: "T2", Rule: "A status that an outer layer set is the status without a key, of the first response, and of its replay.", Source: "trap: status set by an outer middleware"},
		func(e *env) {
			srv := e.serve(Options{Outer: true})
			for _, p := range []Program{{}, {Body: "no status of its own"}, {Status: 201, Body: "its own"}} {
				c := e.post(p).freshKey()
				plain := srv.run(c.withKeys())
				first := srv.run(c)
				if first.status != plain.status || first.body != plain.body {
					srv.Errorf("answered %v, without a key %v", first, plain)
				}
				srv.replays(c, first)
			}
		},
	},
	{
		conformance.Case{ID: "T3", Rule: "Later requests on a connection do not change an earlier one: key, tenant, body and response are copied.", Source: "trap: fasthttp buffers reused"},
		func(e *env) {
			srv := e.serve(Options{})
			w := srv.dial()
			var calls []call
			var firsts []answer
			for i := range 20 {
				word := strings.Repeat(string(rune('a'+i)), 40+i)
				c := e.post(Program{Status: 201, Body: "answer " + word, Headers: []Pair{{"X-Word", word}, {"Location", "/" + word}}})
				c = c.withKeys("key-"+word).withTenant(e.tenant+word).withBody("body "+word).with("Content-Type", "text/"+word)
				a := w.ask(c)
				srv.wantRun(a)
				calls, firsts = append(calls, c), append(firsts, a)
			}
			for i, c := range calls {
				srv.wantReplay(w.ask(c), firsts[i])
			}
			srv.ran(20)
		},
	},
	{
		conformance.Case{ID: "T4", Rule: "While a request is in progress, requests on the same and other connections do not change it.", Source: "trap: fasthttp buffers reused"},
		func(e *env) {
			srv := e.serve(Options{})
			p := echoes
			p.Effect = true
			c := e.post(p).withBody(strings.Repeat("the first body ", 40))
			running := srv.dial()
			running.write(c.bytes())
			srv.waitForHandler()
			w := srv.dial()
			for i := range 50 {
				a := w.ask(e.post(created).freshKey().withBody(strings.Repeat("x", 10*i)).withTenant(e.tenant + strconv.Itoa(i)))
				if a.status == http.StatusServiceUnavailable {
					break // a store with one attempt at a time, after a wait: more requests take longer than the attempt may
				}
			}
			srv.wantProblem(w.ask(c), c, protocol.CodeInProgress)
			srv.releaseHandlers()
			first := running.read()
			srv.wantBody(first, c.body)
			srv.replays(c, first)
		},
	},
	{
		conformance.Case{ID: "T7", Rule: "A request without a key gets the same response as without the middleware: streams, trailers, errors, cuts.", Source: "profile"},
		func(e *env) {
			srv := e.serve(Options{})
			w := srv.dial()
			if a := w.ask(e.post(streamed).withKeys()); a.body != streamedBody || a.value("X-Stream") != "1" {
				srv.Errorf("a stream is answered %v", a)
			}
			p := created
			p.Trailers = []Pair{{"X-Checksum", "abc"}}
			if a := w.ask(e.post(p).withKeys()); a.body != p.Body || !slices.Equal(valuesOf(a.trailers, "X-Checksum"), []string{"abc"}) {
				srv.Errorf("trailers are answered %v", a)
			}
			for _, p := range cutShort {
				srv.dial().wantFailure(e.post(p).withKeys())
			}
			srv.dial().wantFailure(e.post(Program{Behaviour: Panics}).withKeys())
			srv.wantNoStoreCall()
		},
	},
}
