package adaptertest

import (
	"strings"
	"time"

	"github.com/reprise-go/reprise/conformance"

	"github.com/reprise-go/reprise/conformance/faultstore"
	"github.com/reprise-go/reprise/core/protocol"
)

// streamed is a program whose handler flushes.
var streamed = Program{
	Status: 200, Headers: []Pair{{"Content-Type", "text/event-stream"}, {"X-Stream", "1"}},
	Chunks: []Chunk{{Body: "data: one\n\n"}, {Body: "data: two\n\n"}, {Body: "data: three\n\n"}},
}

const streamedBody = "data: one\n\ndata: two\n\ndata: three\n\n"

var streamingCases = []testCase{
	{
		conformance.Case{ID: "R34a", Rule: "What a handler flushes goes out before the answer is recorded.", Source: "profile", Needs: []conformance.Need{conformance.Leases}},
		func(s *stage) {
			at := s.serve(Options{})
			gate := make(chan struct{})
			at.faults.Next(faultstore.Complete, faultstore.Hold(gate))
			c := s.post(streamed)
			w := at.dial()
			w.write(c.bytes())
			head := w.await("\r\n\r\n")
			if !strings.HasPrefix(head, "HTTP/1.1 200 ") || !strings.Contains(head, "X-Stream: 1\r\n") {
				at.Errorf("the stream begins with %q", head)
			}
			w.await("data: three\n\n")
			close(gate)
			w.await("0\r\n\r\n")
			at.ran(1)
		},
	},
	{
		conformance.Case{ID: "R34b", Rule: "A streamed answer is replayed as a whole.", Source: "profile"},
		func(s *stage) {
			at := s.serve(Options{})
			c := s.post(streamed)
			first := at.run(c)
			if first.body != streamedBody {
				at.Errorf("streamed %v", first)
			}
			at.replays(c, first)
			at.ran(1)
		},
	},
	{
		conformance.Case{ID: "R34c", Rule: "Where effects commit with the answer, nothing of it goes out before they have.", Source: "profile", Needs: []conformance.Need{conformance.AtomicClaims}},
		func(s *stage) {
			at := s.serve(Options{})
			gate := make(chan struct{})
			at.faults.Next(faultstore.Complete, faultstore.Hold(gate))
			c := s.post(streamed)
			w := at.dial()
			w.write(c.bytes())
			if err := at.faults.Await(at.Context(), faultstore.Complete, 1); err != nil {
				at.Fatal(err)
			}
			if !w.silent(30 * time.Millisecond) {
				at.Error("a part of the answer goes out before the effects are committed")
			}
			close(gate)
			first := w.read()
			if first.body != streamedBody {
				at.Errorf("answered %v", first)
			}
			at.replays(c, first)
		},
	},
	{
		conformance.Case{ID: "R34d", Rule: "A stream that is cut short is released, or kept as unavailable, by the preset.", Source: "profile", Needs: []conformance.Need{conformance.Leases}},
		func(s *stage) {
			for _, behaviour := range []Behaviour{Panics, Aborts} {
				p := streamed
				p.Behaviour = behaviour
				at := s.serve(Options{})
				c := s.post(p).freshKey()
				at.dial().wantCut(c)
				last := c.does(created)
				at.replays(last, at.run(last))

				at = s.serve(Options{Guard: atMostOnce})
				c = c.freshKey()
				at.dial().wantCut(c)
				at.refuses(c, protocol.CodeResultUnavailable)
				at.ran(1)
			}
		},
	},
	{
		conformance.Case{ID: "R34e", Rule: "A stream whose status is released is released.", Source: "profile"},
		func(s *stage) {
			at := s.serve(Options{})
			p := streamed
			p.Status = 503
			c := s.post(p)
			for range 2 {
				if a := at.run(c); a.status != 503 || a.body != streamedBody {
					at.Errorf("answered %v", a)
				}
			}
			at.ran(2)
		},
	},
	{
		conformance.Case{ID: "R34f", Rule: "The answer on a hijacked connection is the handler's, and is never kept.", Source: "profile"},
		func(s *stage) {
			at := s.serve(Options{})
			c := s.post(hijacked)
			for _, a := range []answer{at.dial().ask(c), at.settled(c)} {
				if a.status != 200 || a.body != "taken" || a.value("X-Own") != "1" || a.value(replayedField) != "" {
					at.Errorf("answered %v", a)
				}
			}
			at.ran(2)
		},
	},
	{
		conformance.Case{ID: "R34g", Rule: "A hijacked request is never run again by a policy that runs at most once.", Source: "profile"},
		func(s *stage) {
			at := s.serve(Options{Guard: atMostOnce})
			c := s.post(hijacked)
			if a := at.dial().ask(c); a.body != "taken" {
				at.Errorf("answered %v", a)
			}
			at.wantProblem(at.settled(c), c, protocol.CodeResultUnavailable)
			at.ran(1)
		},
	},
	{
		conformance.Case{ID: "R34h", Rule: "An upgraded connection passes through untouched, with a key or without: a GET is not keyed.", Source: "RFC 9110 7.8"},
		func(s *stage) {
			at := s.serve(Options{Guard: protocol.Config{Required: true}})
			c := s.post(hijacked).withMethod("GET").withBody("").with("Connection", "Upgrade").with("Upgrade", "websocket").with("Sec-WebSocket-Version", "13")
			for _, c := range []call{c, c, c.withKeys()} {
				w := at.dial()
				w.write(c.head())
				if a := w.read(); a.body != "taken" {
					at.Errorf("answered %v", a)
				}
			}
			at.untouched()
		},
	},
	{
		conformance.Case{ID: "R35a", Rule: "A body over the limit is sent in full; its retry gets status and fields with a summary, and never runs.", Source: "profile", Needs: []conformance.Need{conformance.Leases}},
		func(s *stage) {
			at := s.serve(Options{Guard: protocol.Config{MaxResponseBody: 1000}})
			for _, mode := range []WriteMode{WriteBytes, WriteString, WriteCopy} {
				p := oversized(100_000)
				p.Write = mode
				c := s.post(p).freshKey()
				if first := at.run(c); first.body != string(PatternBody(100_000)) || first.value("ETag") == "" {
					at.Errorf("the first answer is %v", first)
				}
				again := at.send(c)
				at.wantSummary(again, 201)
				if again.value("ETag")+again.value("Content-Language") != "" {
					at.Errorf("the summary has fields about the body that it stands for: %v", again)
				}
			}
			at.ran(3)
		},
	},
	{
		conformance.Case{ID: "R35b", Rule: "A body of exactly the limit is kept.", Source: "profile"},
		func(s *stage) {
			at := s.serve(Options{Guard: protocol.Config{MaxResponseBody: 1000}})
			c := s.post(oversized(1000))
			at.replays(c, at.run(c))
		},
	},
	{
		conformance.Case{ID: "R35c", Rule: "By option the retry of a body over the limit is told that the result is unavailable.", Source: "profile", Needs: []conformance.Need{conformance.Leases}},
		func(s *stage) {
			at := s.serve(Options{Guard: protocol.Config{MaxResponseBody: 1000, Oversize: protocol.Unavailable}})
			c := s.post(oversized(1001))
			if first := at.run(c); len(first.body) != 1001 {
				at.Errorf("the first answer is %v", first)
			}
			at.refuses(c, protocol.CodeResultUnavailable)
		},
	},
	{
		conformance.Case{ID: "R35d", Rule: "A stream over the limit is sent in full, and not kept.", Source: "profile", Needs: []conformance.Need{conformance.Leases}},
		func(s *stage) {
			at := s.serve(Options{Guard: protocol.Config{MaxResponseBody: len(streamedBody) - 1}})
			p := streamed
			p.Headers = []Pair{{"Location", "/orders/1"}}
			c := s.post(p)
			if first := at.run(c); first.body != streamedBody {
				at.Errorf("streamed %v", first)
			}
			at.wantSummary(at.send(c), 200)
			at.ran(1)
		},
	},
	{
		conformance.Case{ID: "R35e", Rule: "Where effects commit with the answer, one that is too large to keep undoes them.", Source: "profile", Needs: []conformance.Need{conformance.AtomicClaims}},
		func(s *stage) {
			at := s.serve(Options{Guard: protocol.Config{MaxResponseBody: 1000}})
			c := s.post(oversized(1001))
			for range 2 {
				at.wantProblem(at.send(c), c, protocol.CodeResponseTooLarge)
			}
			at.ran(2)
			last := c.does(created)
			at.replays(last, at.run(last))
		},
	},
}

// hijacked is a program whose handler takes the connection.
var hijacked = Program{Behaviour: Hijacks, Headers: []Pair{{"X-Own", "1"}}, Body: "taken"}

// oversized is a program with a body of n bytes.
func oversized(n int) Program {
	return Program{Status: 201, BodySize: n, Headers: []Pair{
		{"Location", "/orders/1"}, {"Content-Type", "x/y"}, {"ETag", `"1"`}, {"Content-Language", "de"},
	}}
}

// wantCut sends a request whose stream breaks off, and demands that the client can tell.
func (w *wire) wantCut(c call) {
	w.stage.Helper()
	w.write(c.bytes())
	a, err := w.tryRead()
	if err == nil || !isClosed(err) {
		w.stage.Fatalf("a stream that breaks off is answered %v, %v", a, err)
	}
}
