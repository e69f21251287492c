package adaptertest

import (
	"strings"
	"time"

	"github.com/reprise-go/reprise/conformance"

	"github.com/reprise-go/reprise/core/protocol"
)

var concurrencyCases = []testCase{
	{
		conformance.Case{ID: "R22b", Rule: "A different request with the same key is refused after the first completed, and its record is untouched; an expired one is refused as well.", Source: "draft 2.6, profile"},
		func(e *env) {
			srv := e.serve(Options{})
			c := e.post(created)
			first := srv.run(c)
			for range 3 {
				srv.refuses(c.withBody("another"), protocol.CodeKeyReused)
				srv.replays(c, first)
			}
			srv.ran(1)
			srv = e.serve(Options{Guard: protocol.Config{Retention: time.Millisecond, Horizon: long}})
			c = c.freshKey()
			srv.run(c)
			srv.eventually("the end of the retention", func() bool { return srv.send(c).value(protocol.FieldReplayed) == "" })
			srv.refuses(c, protocol.CodeResultExpired)
			srv.refuses(c.withBody("another"), protocol.CodeKeyReused)
		},
	},
	{
		conformance.Case{ID: "R23a", Rule: "A client that leaves while its request runs, or before the first byte of a stream, stops neither the run nor the record.", Source: "profile, trap: client gone before the first byte"},
		func(e *env) {
			for _, p := range []Program{{Echo: true, DelayMS: 50}, {Chunks: []Chunk{{Body: "one,"}, {Body: "two,"}, {Body: "three"}}}} {
				srv := e.serve(Options{})
				p.Effect, p.Status = true, 201
				c := e.post(p).freshKey()
				w := srv.dial()
				w.write(c.bytes())
				srv.waitForHandler()
				w.close()
				srv.releaseHandlers()
				got := srv.wantReplayAfterLeaving(c)
				if got.status != 201 || got.exec() != 1 || !p.Echo && got.body != "one,two,three" {
					srv.Errorf("answered %v", got)
				}
				if p.Echo && srv.echo(got).ContextCause != "" { // the delay ends when the context is cancelled
					srv.Errorf("the handler was told to stop: %v", got)
				}
				srv.ran(1)
			}
		},
	},
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
