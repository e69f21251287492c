package adaptertest

import (
	"strings"
	"sync/atomic"
	"time"

	"github.com/reprise-go/reprise/conformance"

	"github.com/reprise-go/reprise/conformance/faultstore"
	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
)

// atMostOnce is the policy that keeps failures.
var atMostOnce = protocol.Config{Preset: reprise.AtMostOnce}

var outcomeCases = []testCase{
	{
		conformance.Case{ID: "R31b", Rule: "A 5xx or 408 is released: the next request runs at once and never gets 409 in-progress. With AtMostOnce it is kept and replayed.", Source: "trap: a 5xx followed by 409s"},
		func(e *env) {
			srv, kept := e.serve(Options{}), e.serve(Options{Guard: atMostOnce})
			statuses := []int{500, 503, 599, 408}
			for _, status := range statuses {
				c := e.post(Program{Status: status, Body: "failed"}).freshKey()
				for range 3 {
					if a := srv.run(c); a.status != status || a.body != "failed" {
						srv.Errorf("answered %v", a)
					}
				}
				last := c.does(created)
				srv.replays(last, srv.run(last))
				c = c.freshKey()
				kept.replays(c, kept.run(c))
			}
			srv.ran(4 * len(statuses))
			kept.ran(len(statuses))
		},
	},
	{
		conformance.Case{ID: "R31j", Rule: "A run that the engine cancels learns it from its context, and its 4xx is released as a 5xx is.", Source: "profile"},
		func(e *env) {
			srv := e.serve(Options{Engine: reprise.Config{MaxRun: time.Millisecond}})
			c := e.post(Program{DelayMS: int(long.Milliseconds()), Echo: true, Status: 409}) // the delay ends when the context is cancelled
			for range 2 {
				if a := srv.run(c); a.status != 409 || srv.echo(a).ContextCause != reprise.ErrRunTooLong.Error() {
					srv.Errorf("answered %v", a)
				}
			}
		},
	},
	{
		conformance.Case{ID: "R32a", Rule: "An error that the handler returns counts as the response that the framework makes of it: below 500 it is kept, and from 500 on released.", Source: "trap: return err into the framework's error handler"},
		func(e *env) {
			srv := e.serve(Options{})
			for _, status := range []int{400, 404, 409, 422, 500, 503} {
				p := Program{Status: status, Behaviour: Fails}
				plain := srv.run(e.post(p).withKeys())
				c := e.post(p).freshKey()
				first := srv.run(c)
				if first.status != status || first.body != plain.body || first.value("Content-Type") != plain.value("Content-Type") {
					srv.Errorf("answered %v, without a key %v", first, plain)
				}
				if status < 500 {
					srv.replays(c, first)
				} else if again := srv.run(c); again.status != status || again.body != first.body {
					srv.Errorf("the retry is answered %v, the first request %v", again, first)
				}
			}
			srv.ran(14)
		},
	},
	{
		conformance.Case{ID: "R33a", Rule: "A response that is cut short, a stream too, is released and never replayed as if it were whole. With AtMostOnce it does not run again either, and a panic is a 500 without a body.", Source: "RFC 9112 8"},
		func(e *env) {
			srv, kept := e.serve(Options{}), e.serve(Options{Guard: atMostOnce})
			for _, p := range cutShort {
				c := e.post(p).freshKey()
				srv.dial().wantFailure(c)
				last := c.does(created)
				srv.replays(last, srv.run(last))
				c = c.freshKey()
				kept.dial().wantFailure(c)
				kept.refuses(c, protocol.CodeResultUnavailable)
			}
			panics := e.post(Program{Behaviour: Panics, Headers: []Pair{{"X-Half", "made"}}}).freshKey()
			kept.dial().wantFailure(panics)
			if a := kept.send(panics); a.status != 500 || a.body != "" || a.value(protocol.FieldReplayed) != "true" || a.value("X-Half") != "" {
				srv.Errorf("a panic is kept as %v, want a 500 without a body", a)
			}
			srv.ran(2 * len(cutShort))
			kept.ran(len(cutShort) + 1)
		},
	},
	{
		conformance.Case{ID: "R33e", Rule: "A status without a body is a response like any other, 200 included: it is kept and replayed without one, and no media type is invented for it.", Source: "profile, RFC 9110 15.3.5"},
		func(e *env) {
			srv := e.serve(Options{})
			statuses := []int{200, 202, 203, 204, 205, 303, 304, 404}
			for _, status := range statuses {
				for _, only := range []bool{false, true} {
					c := e.post(Program{Status: status, StatusOnly: only}).freshKey()
					first := srv.send(c)
					srv.wantRun(first)
					if bare := srv.send(c.withKeys()); first.status != status || first.body != "" || bare.status != status {
						srv.Errorf("answered %v, and %v without a key", first, bare)
					}
					srv.wantReplay(srv.send(c), first) // its Content-Type included
				}
			}
			srv.ran(4 * len(statuses))
		},
	},
	{
		conformance.Case{ID: "R33f", Rule: "An error that the handler reports beside its response does not change it: the response is kept and replayed, a bare 200 included.", Source: "trap: c.Error(err) taken for no answer"},
		func(e *env) {
			for _, policy := range []protocol.Config{{}, atMostOnce} {
				srv := e.serve(Options{Guard: policy})
				programs := []Program{
					{Status: 200, StatusOnly: true, Report: true},
					{Status: 202, StatusOnly: true, Report: true},
					{Status: 200, Body: "done", Report: true},
					{Status: 422, Body: "refused", Report: true},
				}
				for _, p := range programs {
					c := e.post(p).freshKey()
					first := srv.run(c)
					if first.status != p.Status || first.body != p.Body {
						srv.Errorf("answered %v", first)
					}
					srv.replays(c, first)
				}
				srv.ran(len(programs))
			}
		},
	},
	{
		conformance.Case{ID: "R33c", Rule: "A policy function that panics after the handler blocks no key: the attempt ends as after a handler's panic.", Source: "profile"},
		func(e *env) {
			var calls atomic.Int32
			panics := func(protocol.Ending) protocol.Decision {
				if calls.Add(1) == 1 {
					panic("the policy panics")
				}
				return protocol.ByPreset
			}
			srv := e.serve(Options{Guard: protocol.Config{Keep: protocol.Keeping{Decide: panics}}})
			c := e.post(created)
			srv.dial().wantFailure(c)
			srv.replays(c, srv.run(c))
			srv.ran(2)
		},
	},
	{
		conformance.Case{ID: "R41a", Rule: "When the store fails after the handler ran, the client gets the handler's response, marked as unrecorded.", Source: "profile"},
		func(e *env) {
			srv := e.serve(Options{Engine: reprise.Config{CompleteTimeout: 100 * time.Millisecond}}) // which a failing completion uses up
			srv.faults.Always(faultstore.Complete, faultstore.FailBefore(store.ErrUnavailable))
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
		conformance.Case{ID: "R33g", Rule: "A response that does not fill its declared Content-Length is never replayed as if it were whole.", Source: "RFC 9112 8"},
		func(e *env) {
			for _, policy := range []protocol.Config{{}, atMostOnce} {
				srv := e.serve(Options{Guard: policy})
				runs := 0
				for _, length := range []string{"100", "3"} {
					c := e.post(Program{Status: 200, Headers: []Pair{{"Content-Length", length}}, Body: "an upstream that dies"}).freshKey()
					w := srv.dial()
					w.write(c.bytes())
					first, err := w.tryRead()
					if err == nil && first.status == 200 && len(first.body) > 3 { // a framework that holds the body corrects its length
						srv.replays(c, first)
						runs++
						continue
					}
					last := c.does(created)
					if policy.Preset == atMostOnce.Preset {
						srv.refuses(last, protocol.CodeResultUnavailable)
						runs++
						continue
					}
					srv.replays(last, srv.run(last))
					runs += 2
				}
				srv.ran(runs)
			}
		},
	},
}

// cutShort are programs whose response ends before it is whole.
var cutShort = []Program{
	{Status: 200, Body: "only half of this", Behaviour: Aborts},
	{Status: 200, Body: "only half of this", Behaviour: Panics},
	{Status: 200, BodySize: 200_000, Behaviour: Panics},
	{Status: 200, Chunks: streamed.Chunks, Behaviour: Panics},
	{Status: 200, Chunks: streamed.Chunks, Behaviour: Aborts},
}

// wantFailure sends a request whose handler does not return, and demands a 500 or the end
// of the connection, and at most half of its response.
func (w *wire) wantFailure(c call) {
	w.srv.Helper()
	w.write(c.bytes())
	a, err := w.tryRead()
	if err == nil && a.status != 500 || err != nil && !isClosed(err) || a.value(protocol.FieldReplayed) != "" {
		w.srv.Fatalf("a handler that does not return is answered %v, %v", a, err)
	}
}

// wantSummary demands the summary that replaces a response whose body was not kept.
func (srv *server) wantSummary(a answer, status int) {
	srv.Helper()
	if a.status != status || strings.TrimSpace(a.body) != `{"status":"completed"}` || a.value("Content-Type") != "application/json" {
		srv.Errorf("answered %v, want %d with a summary", a, status)
	}
	if a.value(protocol.FieldBody) != "omitted" || a.value(protocol.FieldReplayed) != "true" || a.value("Location") != "/orders/1" {
		srv.Errorf("answered %v, want the fields of the first answer and the marks", a)
	}
}
