package adaptertest

import (
	"strings"

	"github.com/reprise-go/reprise/conformance"

	"github.com/reprise-go/reprise/core/protocol"
)

var methodCases = []testCase{
	{
		conformance.Case{ID: "R9a", Rule: "GET, HEAD, OPTIONS, TRACE and CONNECT pass through untouched, with a key or without.", Source: "RFC 9110 9.2.2"},
		func(s *stage) {
			at := s.serve(Options{Guard: protocol.Config{Required: true}})
			runs := 0
			for _, method := range []string{"GET", "HEAD", "OPTIONS", "TRACE", "CONNECT"} {
				c := s.post(Program{Status: 200, Body: "seen"}).withMethod(method).withBody("")
				for _, c := range []call{c, c, c.withKeys(), c.withKeys("not a key"), c.withKeys("a", "b")} {
					w := at.dial()
					w.write(c.head())
					a, err := w.in.answer(method == "HEAD")
					if err != nil {
						at.Fatalf("%s: %v", method, err)
					}
					at.wantRun(a)
					runs++
				}
			}
			at.ran(runs)
			at.untouched()
		},
	},
	{
		conformance.Case{ID: "R9b", Rule: "POST and PATCH are keyed; PUT and DELETE pass through unless they are configured.", Source: "draft 1, profile"},
		func(s *stage) {
			at := s.serve(Options{})
			for _, method := range []string{"POST", "PATCH"} {
				c := s.post(created).withMethod(method).freshKey()
				at.replays(c, at.run(c))
			}
			for _, method := range []string{"PUT", "DELETE"} {
				c := s.post(created).withMethod(method).freshKey()
				at.run(c)
				at.run(c)
			}
			at.ran(2 + 4)
		},
	},
	{
		conformance.Case{ID: "R9c", Rule: "Configured methods are keyed, and no others.", Source: "profile"},
		func(s *stage) {
			at := s.serve(Options{Guard: protocol.Config{Methods: []string{"PUT", "DELETE"}, Required: true}})
			for _, method := range []string{"PUT", "DELETE"} {
				c := s.post(created).withMethod(method).freshKey()
				at.replays(c, at.run(c))
				at.refuses(c.withKeys(), protocol.CodeKeyMissing)
			}
			at.run(s.post(created).withKeys())
			at.ran(3)
		},
	},
	{
		conformance.Case{ID: "R10a", Rule: "Where a key is required, a missing one is refused with a link to the documentation.", Source: "draft 2.7"},
		func(s *stage) {
			at := s.serve(Options{Guard: protocol.Config{Required: true}})
			a := at.refuses(s.post(created).withKeys(), protocol.CodeKeyMissing)
			if link := a.value("Link"); !strings.Contains(link, "key-missing") || !strings.Contains(link, "describedby") {
				at.Errorf("the link to the documentation is %q", link)
			}
			at.ran(0)
			at.untouched()
		},
	},
	{
		conformance.Case{ID: "R10b", Rule: "Where a key is optional, a request without one passes through: it runs each time, and has no mark.", Source: "draft 2.6"},
		func(s *stage) {
			at := s.serve(Options{})
			for i := range 3 {
				if a := at.run(s.post(created).withKeys()); a.exec() != i+1 || a.status != 201 || a.body != created.Body {
					at.Errorf("run %d is answered %v", i+1, a)
				}
			}
			at.untouched()
		},
	},
	{
		conformance.Case{ID: "R10c", Rule: "Nothing is stored for a request without a key: a later one with a key is a first one.", Source: "draft 2.6"},
		func(s *stage) {
			at := s.serve(Options{})
			c := s.post(created)
			at.run(c.withKeys())
			first := at.run(c)
			at.run(c.withKeys())
			at.replays(c, first)
			at.ran(3)
		},
	},
}
