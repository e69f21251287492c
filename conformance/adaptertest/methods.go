package adaptertest

import (
	"github.com/reprise-go/reprise/conformance"

	"github.com/reprise-go/reprise/core/protocol"
)

var methodCases = []testCase{
	{
		conformance.Case{ID: "R9a", Rule: "GET, HEAD, OPTIONS, TRACE and CONNECT pass through untouched, with a key or without.", Source: "RFC 9110 9.2.2"},
		func(e *env) {
			srv := e.serve(Options{Guard: protocol.Config{Required: true}})
			runs := 0
			for _, method := range []string{"GET", "HEAD", "OPTIONS", "TRACE", "CONNECT"} {
				c := e.post(Program{Status: 200, Body: "seen"}).withMethod(method).withBody("")
				for _, c := range []call{c, c, c.withKeys(), c.withKeys("not a key"), c.withKeys("a", "b")} {
					w := srv.dial()
					w.write(c.head())
					a, err := w.in.answer(method == "HEAD")
					if err != nil {
						srv.Fatalf("%s: %v", method, err)
					}
					srv.wantRun(a)
					runs++
				}
			}
			srv.ran(runs)
			srv.wantNoStoreCall()
		},
	},
	{
		conformance.Case{ID: "R10b", Rule: "Where a key is optional, a request without one passes through: it runs each time, and its response has neither a marker nor a field of the policy.", Source: "draft 2.6"},
		func(e *env) {
			srv := e.serve(Options{Guard: announcing})
			for i := range 3 {
				a := srv.run(e.post(created).withKeys())
				if a.exec() != i+1 || a.status != 201 || a.body != created.Body || len(a.values(protocol.FieldExpires)) > 0 {
					srv.Errorf("run %d is answered %v", i+1, a)
				}
			}
			srv.wantNoStoreCall()
		},
	},
}
