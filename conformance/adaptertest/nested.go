package adaptertest

import (
	"github.com/reprise-go/reprise/conformance"
	"github.com/reprise-go/reprise/conformance/faultstore"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/protocol"
)

var nestedCases = []testCase{
	{
		conformance.Case{ID: "R51a", Rule: "A guard that stands inside of itself, on a group and on its route, passes its own request: the handler runs once, and its response is kept once.", Source: "profile"},
		func(e *env) {
			srv := e.serve(Options{Inner: func(outer *protocol.Guard) (*protocol.Guard, error) { return outer, nil }})
			c := e.post(echoes).withBody("the whole body")
			first := srv.run(c)
			srv.wantBody(first, c.body)
			if n := srv.faults.Count(faultstore.Complete); n != 1 {
				srv.Errorf("%d answers were recorded, want 1", n)
			}
			srv.replays(c, first)
			srv.refuses(c.withBody("another"), protocol.CodeKeyReused)
			srv.ran(1)
		},
	},
	{
		conformance.Case{ID: "R51b", Rule: "A guard with another policy that stands inside of one refuses the request: nothing runs.", Source: "profile"},
		func(e *env) {
			srv := e.serve(Options{Inner: func(outer *protocol.Guard) (*protocol.Guard, error) {
				return outer.With(func(c *protocol.Config) { c.Preset = reprise.AtMostOnce })
			}})
			c := e.post(created)
			for range 2 { // the first leaves no key held
				srv.refuses(c, protocol.CodeInternalError)
			}
			srv.run(c.withKeys())
		},
	},
}
