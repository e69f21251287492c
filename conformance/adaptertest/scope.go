package adaptertest

import (
	"github.com/reprise-go/reprise/conformance"

	"github.com/reprise-go/reprise/core/protocol"
)

var scopeCases = []testCase{
	{
		conformance.Case{ID: "R43a", Rule: "Equal keys of different principals are independent: each runs, and gets its own replay.", Source: "draft 5"},
		func(e *env) {
			srv := e.serve(Options{})
			mine := e.post(created)
			theirs := mine.withTenant(e.tenant + "-other").withBody("another").does(Program{Status: 202, Body: "theirs"})
			first, second := srv.run(mine), srv.run(theirs)
			srv.replays(mine, first)
			srv.replays(theirs, second)
			srv.ran(2)
		},
	},
	{
		conformance.Case{ID: "R43d", Rule: "A principal whose name has a control byte is refused: nothing runs and nothing is stored.", Source: "profile"},
		func(e *env) {
			srv := e.serve(Options{})
			c := e.post(created)
			srv.refuses(c.withTenant(e.tenant+"\tother"), protocol.CodeScopeMissing)
			srv.wantNoStoreCall()
			srv.run(c)
		},
	},
	{
		conformance.Case{ID: "R44", Rule: "A request without a known principal is refused, with 503 if the principal cannot be determined at the moment: nothing runs and nothing is stored.", Source: "profile"},
		func(e *env) {
			srv := e.serve(Options{})
			c := e.post(created)
			for _, method := range []string{"POST", "PATCH"} {
				srv.refuses(c.withTenant("").withMethod(method), protocol.CodeScopeMissing)
				srv.refuses(c.withTenant(AwayTenant).withMethod(method), protocol.CodeStoreUnavailable)
			}
			srv.ran(0)
			srv.wantNoStoreCall()
			srv.run(c)
		},
	},
}
