package adaptertest

import (
	"strings"

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
		conformance.Case{ID: "R9b", Rule: "POST and PATCH are keyed; PUT and DELETE pass through unless they are configured.", Source: "draft 1, profile"},
		func(e *env) {
			srv := e.serve(Options{})
			for _, method := range []string{"POST", "PATCH"} {
				c := e.post(created).withMethod(method).freshKey()
				srv.replays(c, srv.run(c))
			}
			for _, method := range []string{"PUT", "DELETE"} {
				c := e.post(created).withMethod(method).freshKey()
				srv.run(c)
				srv.run(c)
			}
			srv.ran(2 + 4)
		},
	},
	{
		conformance.Case{ID: "R9c", Rule: "Configured methods are keyed, and no others.", Source: "profile"},
		func(e *env) {
			srv := e.serve(Options{Guard: protocol.Config{Methods: []string{"PUT", "DELETE"}, Required: true}})
			for _, method := range []string{"PUT", "DELETE"} {
				c := e.post(created).withMethod(method).freshKey()
				srv.replays(c, srv.run(c))
				srv.refuses(c.withKeys(), protocol.CodeKeyMissing)
			}
			srv.run(e.post(created).withKeys())
			srv.ran(3)
		},
	},
	{
		conformance.Case{ID: "R10a", Rule: "Where a key is required, a missing one is refused with a link to the documentation.", Source: "draft 2.7"},
		func(e *env) {
			srv := e.serve(Options{Guard: protocol.Config{Required: true}})
			a := srv.refuses(e.post(created).withKeys(), protocol.CodeKeyMissing)
			if link := a.value("Link"); !strings.Contains(link, "key-missing") || !strings.Contains(link, "describedby") {
				srv.Errorf("the link to the documentation is %q", link)
			}
			srv.ran(0)
			srv.wantNoStoreCall()
		},
	},
	{
		conformance.Case{ID: "R10b", Rule: "Where a key is optional, a request without one passes through: it runs each time, and its response has no marker.", Source: "draft 2.6"},
		func(e *env) {
			srv := e.serve(Options{})
			for i := range 3 {
				if a := srv.run(e.post(created).withKeys()); a.exec() != i+1 || a.status != 201 || a.body != created.Body {
					srv.Errorf("run %d is answered %v", i+1, a)
				}
			}
			srv.wantNoStoreCall()
		},
	},
	{
		conformance.Case{ID: "R10c", Rule: "Nothing is stored for a request without a key: a later request with a key is a first request.", Source: "draft 2.6"},
		func(e *env) {
			srv := e.serve(Options{})
			c := e.post(created)
			srv.run(c.withKeys())
			first := srv.run(c)
			srv.run(c.withKeys())
			srv.replays(c, first)
			srv.ran(3)
		},
	},
}
