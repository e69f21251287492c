package adaptertest

import (
	"slices"

	"github.com/reprise-go/reprise/conformance"
	"github.com/reprise-go/reprise/core/protocol"
)

var unknownCases = []testCase{
	{
		conformance.Case{ID: "R52c", Rule: "A handler that said that its outcome is unknown is not run again, whether it answers, at length too, panics or drops the connection.", Source: "profile"},
		func(e *env) {
			srv := e.serve(Options{Guard: protocol.Config{Limits: protocol.Limits{ResponseBody: 1000}}})
			for i, p := range slices.Concat(cutShort, []Program{{Status: 202}, {Status: 504, BodySize: 1001}, {Behaviour: Panics}}) {
				p.Unknown = "the bank timed out"
				c := e.post(p).freshKey()
				w := srv.dial()
				w.write(c.bytes())
				_, _ = w.tryRead() // the connection may end
				srv.wantProblem(srv.sendUntilDone(c), c, protocol.CodeOutcomeUnknown)
				srv.ran(i + 1)
			}
		},
	},
}
