package adaptertest

import (
	"slices"
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
		conformance.Case{ID: "R34a", Rule: "Bytes that a handler flushes are sent before the response is recorded.", Source: "profile"},
		func(e *env) {
			srv := e.serve(Options{})
			gate := make(chan struct{})
			srv.faults.Next(faultstore.Complete, faultstore.Hold(gate))
			c := e.post(streamed)
			w := srv.dial()
			w.write(c.bytes())
			head := w.await("\r\n\r\n")
			if !strings.HasPrefix(head, "HTTP/1.1 200 ") || !strings.Contains(head, "X-Stream: 1\r\n") {
				srv.Errorf("the stream begins with %q", head)
			}
			w.await("data: three\n\n")
			close(gate)
			w.await("0\r\n\r\n")
			srv.ran(1)
		},
	},
	{
		conformance.Case{ID: "R34c", Rule: "Before a response is recorded no client has the whole of it, and none of it where effects commit with it.", Source: "profile"},
		func(e *env) {
			streams, commits := e.serve(Options{Guard: protocol.Config{Limits: protocol.Limits{ResponseBody: 1000}}}), e.serve(Options{Guard: transactional})
			length := func(n string) []Pair { return []Pair{{"Content-Length", n}} }
			for _, row := range []struct {
				*server
				Program
			}{
				{commits, streamed},
				{streams, Program{Headers: length("20000"), BodySize: 20_000}},
				{streams, Program{Headers: length("2000"), Chunks: []Chunk{{Body: strings.Repeat("x", 2000)}}}},
				{streams, Program{Headers: length("5"), Chunks: []Chunk{{Body: "hello"}}}},
				{streams, Program{Headers: length("0"), Chunks: []Chunk{{}}}},
				{streams, Program{Status: 204, Chunks: []Chunk{{}}}},
				{streams, Program{Status: 304, Chunks: []Chunk{{}}}},
			} {
				srv, gate := row.server, make(chan struct{})
				n := srv.faults.Count(faultstore.Complete)
				srv.faults.Next(faultstore.Complete, faultstore.Hold(gate))
				c := e.post(row.Program).freshKey()
				w := srv.dial()
				w.write(c.bytes())
				if err := srv.faults.Await(srv.Context(), faultstore.Complete, n+1); err != nil {
					srv.Fatal(err)
				}
				early, err := w.peek(30 * time.Millisecond)
				if err == nil || srv == commits && early.status != 0 {
					srv.Errorf("before it is recorded, the client gets %v, %v", early, err)
				}
				close(gate)
				first := w.read()
				srv.wantRun(first)
				if again := srv.send(c); again.value(protocol.FieldReplayed) != "true" || again.status != first.status {
					srv.Errorf("the retry of %v is answered %v", first, again)
				}
			}
			c := e.post(Program{Headers: length("5"), Chunks: []Chunk{{Body: "hello"}, {Body: "-"}}, Behaviour: Panics}).freshKey()
			w := streams.dial()
			w.write(c.bytes())
			if whole, err := w.tryRead(); err == nil && whole.status == 200 { // a framework may read it before it sends it
				streams.replays(c, whole)
			}
			streams.ran(7)
		},
	},
	{
		conformance.Case{ID: "R34f", Rule: "The response on a hijacked connection is the handler's own and is never kept.", Source: "profile"},
		func(e *env) {
			srv := e.serve(Options{})
			c := e.post(hijacked)
			for _, a := range []answer{srv.send(c), srv.sendUntilDone(c)} {
				if a.status != 200 || a.body != "taken" || a.value("X-Own") != "1" || a.value(protocol.FieldReplayed) != "" {
					srv.Errorf("answered %v", a)
				}
			}
			srv.ran(2)
		},
	},
	{
		conformance.Case{ID: "R35n", Rule: "A client that leaves while a body over the limit is sent, of a declared length or not: its retry gets the summary and does not run.", Source: "profile"},
		func(e *env) {
			srv := e.serve(Options{Guard: protocol.Config{Limits: protocol.Limits{ResponseBody: 1000}}})
			part := strings.Repeat("x", 4000)
			for i, declared := range [][]Pair{nil, {{"Content-Length", "20000"}}} {
				c := e.post(Program{
					Status: 201, Headers: append(declared, Pair{"Location", "/orders/1"}), Chunks: slices.Repeat([]Chunk{{100, part}}, 5),
				}).freshKey()
				w := srv.dial()
				w.write(c.bytes())
				w.await("HTTP/1.1 201 Created\r\n")
				w.close()
				srv.wantSummary(srv.sendUntilDone(c), 201)
				srv.ran(i + 1)
			}
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
