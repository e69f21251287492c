package adaptertest

import (
	"slices"

	"github.com/reprise-go/reprise/conformance"
	"github.com/reprise-go/reprise/core/protocol"
)

// bankTimedOut is the reason that the handlers of these cases give.
const bankTimedOut = "the bank timed out"

var unknownCases = []testCase{
	{
		conformance.Case{ID: "R52a", Rule: "The client of a handler that says that its outcome is unknown gets the handler's own response; every retry gets 409 outcome-unknown.", Source: "profile"},
		func(e *env) {
			srv := e.serve(Options{})
			for _, status := range []int{504, 202} {
				c := e.post(Program{Status: status, Body: "ask us", Headers: []Pair{{"X-Reference", "r1"}}, Unknown: bankTimedOut}).freshKey()
				if first := srv.run(c); first.status != status || first.body != "ask us" || first.value("X-Reference") != "r1" {
					srv.Errorf("the first answer is %v", first)
				}
				srv.refuses(c, protocol.CodeOutcomeUnknown)
			}
		},
	},
	{
		conformance.Case{ID: "R52c", Rule: "A handler that said that its outcome is unknown and then panics, drops the connection or answers at length is not run again.", Source: "profile"},
		func(e *env) {
			srv := e.serve(Options{Guard: protocol.Config{Limits: protocol.Limits{ResponseBody: 1000}}})
			for i, p := range slices.Concat(cutShort, []Program{{Status: 504, BodySize: 1001}, {Behaviour: Panics}}) {
				p.Unknown = bankTimedOut
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
