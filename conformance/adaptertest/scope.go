package adaptertest

import (
	"github.com/reprise-go/reprise/conformance"

	"github.com/reprise-go/reprise/core/protocol"
)

var scopeCases = []testCase{
	{
		conformance.Case{ID: "R7c", Rule: "A trailer does not change the principal: the request belongs to the one that its header names.", Source: "RFC 9110 6.5.1"},
		func(e *env) {
			srv := e.serve(Options{})
			victim := e.post(created)
			c := victim.withoutTenant()
			w := srv.dial()
			w.write(c.chunked(4, line{TenantHeader, victim.tenant}))
			first := w.read()
			srv.wantRun(first)
			srv.replays(c, first) // it is a request of the default tenant
			if a := srv.run(victim); a.exec() != 2 {
				srv.Errorf("the key of the victim is taken: %v", a)
			}
		},
	},
	{
		conformance.Case{ID: "R44", Rule: "A request without a known principal, or of one whose name has a control byte, is refused, with 503 if the principal cannot be determined at the moment: nothing runs and nothing is stored.", Source: "profile"},
		func(e *env) {
			srv := e.serve(Options{})
			c := e.post(created)
			srv.refuses(c.withTenant(""), protocol.CodeScopeMissing)
			srv.refuses(c.withTenant(e.tenant+"\tother"), protocol.CodeScopeMissing)
			srv.refuses(c.withTenant(AwayTenant), protocol.CodeStoreUnavailable)
			srv.ran(0)
			srv.wantNoStoreCall()
			srv.run(c)
		},
	},
}
