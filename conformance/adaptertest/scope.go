package adaptertest

import (
	"github.com/reprise-go/reprise/conformance"

	"github.com/reprise-go/reprise/core/protocol"
)

var scopeCases = []testCase{
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
