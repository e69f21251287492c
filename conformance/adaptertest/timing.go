package adaptertest

import (
	"time"

	"github.com/reprise-go/reprise/conformance"

	"github.com/reprise-go/reprise/core/protocol"
)

var timeCases = []testCase{
	{
		conformance.Case{ID: "R37e", Rule: "With a horizon, a retry after the retention gets 409 result-expired, and a different request still 422; nothing runs.", Source: "profile"},
		func(e *env) {
			srv := e.serve(Options{Guard: protocol.Config{Retention: time.Millisecond, Horizon: long}})
			c := e.post(created)
			srv.run(c)
			srv.eventually("the end of the retention", func() bool { return srv.send(c).status != 201 })
			for range 2 {
				srv.refuses(c, protocol.CodeResultExpired)
				srv.refuses(c.withBody("another"), protocol.CodeKeyReused)
			}
			srv.ran(1)
		},
	},
}
