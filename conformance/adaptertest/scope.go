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
		conformance.Case{ID: "R43b", Rule: "A principal cannot see that another principal's key is in progress.", Source: "draft 5"},
		func(e *env) {
			srv := e.serve(Options{})
			first := srv.begin(e.post(held))
			srv.waitForHandler()
			theirs := e.post(created).withTenant(e.tenant + "-other")
			srv.replays(theirs, srv.run(theirs))
			srv.releaseHandlers()
			srv.replays(e.post(held), first.answer())
			srv.ran(2)
		},
	},
	{
		conformance.Case{ID: "R43c", Rule: "Principal and key are combined without ambiguity: no two pairs have the same ID.", Source: "profile"},
		func(e *env) {
			srv := e.serve(Options{})
			c := e.post(created)
			pairs := [][2]string{
				{e.tenant + "x", "yz"},
				{e.tenant + "xy", "z"},
				{e.tenant, "xyz"},
				{e.tenant + ":x", "y"},
				{e.tenant, "x:y"},
				{e.tenant + ":", "x:y"},
				{e.tenant + "/a", "b"},
				{e.tenant, "/a/b"},
			}
			for i, pair := range pairs {
				if a := srv.run(c.withTenant(pair[0]).withKeys(pair[1])); a.exec() != i+1 {
					srv.Errorf("the tenant %s with the key %s is taken for an earlier pair", pair[0], pair[1])
				}
			}
			srv.ran(len(pairs))
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
