package adaptertest

import (
	"strings"

	"github.com/reprise-go/reprise/conformance"

	"github.com/reprise-go/reprise/core/protocol"
)

var scopeCases = []testCase{
	{
		conformance.Case{ID: "R43a", Rule: "Equal keys of different principals are independent: each runs, and gets its own replay.", Source: "draft 5"},
		func(s *stage) {
			at := s.serve(Options{})
			mine := s.post(created)
			theirs := mine.withTenant(s.tenant + "-other").withBody("another").does(Program{Status: 202, Body: "theirs"})
			first, second := at.run(mine), at.run(theirs)
			at.replays(mine, first)
			at.replays(theirs, second)
			at.ran(2)
		},
	},
	{
		conformance.Case{ID: "R43b", Rule: "A principal does not see that another's key is in progress.", Source: "draft 5"},
		func(s *stage) {
			at := s.serve(Options{})
			first := at.begin(s.post(held))
			at.holds()
			theirs := s.post(created).withTenant(s.tenant + "-other")
			at.replays(theirs, at.run(theirs))
			at.open()
			at.replays(s.post(held), first.answer())
			at.ran(2)
		},
	},
	{
		conformance.Case{ID: "R43c", Rule: "Principal and key join without ambiguity: no two pairs are one.", Source: "profile"},
		func(s *stage) {
			at := s.serve(Options{})
			c := s.post(created)
			pairs := [][2]string{
				{s.tenant + "x", "yz"},
				{s.tenant + "xy", "z"},
				{s.tenant, "xyz"},
				{s.tenant + ":x", "y"},
				{s.tenant, "x:y"},
				{s.tenant + ":", "x:y"},
				{s.tenant + "/a", "b"},
				{s.tenant, "/a/b"},
			}
			for i, pair := range pairs {
				if a := at.run(c.withTenant(pair[0]).withKeys(pair[1])); a.exec() != i+1 {
					at.Errorf("the tenant %s with the key %s is taken for an earlier pair", pair[0], pair[1])
				}
			}
			at.ran(len(pairs))
		},
	},
	{
		conformance.Case{ID: "R43d", Rule: "A principal whose name has a control byte is refused: nothing runs and nothing is stored.", Source: "profile"},
		func(s *stage) {
			at := s.serve(Options{})
			c := s.post(created)
			at.refuses(c.withTenant(s.tenant+"\tother"), protocol.CodeScopeMissing)
			at.untouched()
			at.run(c)
		},
	},
	{
		conformance.Case{ID: "R44", Rule: "A request whose principal is not known is refused: nothing runs and nothing is stored.", Source: "profile"},
		func(s *stage) {
			at := s.serve(Options{})
			c := s.post(created)
			for _, method := range []string{"POST", "PATCH"} {
				at.refuses(c.withTenant("").withMethod(method), protocol.CodeScopeMissing)
			}
			at.ran(0)
			at.untouched()
			at.run(c)
		},
	},
}

var problemCases = []testCase{
	{
		conformance.Case{ID: "R45a", Rule: "A problem has a stable type and a constant title, and nothing of the request.", Source: "RFC 9457 3"},
		func(s *stage) {
			at := s.serve(Options{Guard: protocol.Config{Required: true, MaxRequestBody: 1000}})
			c := s.post(created).withTarget("/t/op?secret=in-the-query").with("X-Secret-Field", "in-the-header")
			seen := map[protocol.Code]problem{}
			for i, key := range []string{"first-secret-key", "other-secret-key"} {
				c := c.withKeys(key).withTenant(s.tenant + "-secret-" + key).withBody("secret body of " + key)
				at.run(c)
				for code, c := range map[protocol.Code]call{
					protocol.CodeKeyMissing:      c.withKeys(),
					protocol.CodeKeyInvalid:      c.withKeys(key + " is not a key"),
					protocol.CodeScopeMissing:    c.withTenant(""),
					protocol.CodeRequestTooLarge: c.withBody(strings.Repeat(c.body, 100)),
					protocol.CodeKeyReused:       c.withBody("another secret body"),
				} {
					a := at.send(c)
					p := at.wantProblem(a, c, code)
					if all := a.String() + a.body; strings.Contains(all, "secret") {
						at.Errorf("%s has something of the request: %v", code, a)
					}
					if i > 0 && p != seen[code] {
						at.Errorf("%s is %+v, and was %+v", code, p, seen[code])
					}
					seen[code] = p
				}
			}
		},
	},
	{
		conformance.Case{ID: "R45b", Rule: "The URI of problem types can be configured.", Source: "RFC 9457 3.1.1"},
		func(s *stage) {
			at := s.serve(Options{Guard: protocol.Config{Required: true, ProblemBase: "https://errors.example.com/idempotency/"}})
			c := s.post(created).withKeys()
			a := at.send(c)
			if p := at.wantProblem(a, c, protocol.CodeKeyMissing); p.Type != "https://errors.example.com/idempotency/key-missing" {
				at.Errorf("the type is %q", p.Type)
			}
			if link := a.value("Link"); !strings.Contains(link, "<https://errors.example.com/idempotency/key-missing>") {
				at.Errorf("the link is %q", link)
			}
		},
	},
	{
		conformance.Case{ID: "R45c", Rule: "Another form of problems can be configured, and is sent as it is made.", Source: "profile"},
		func(s *stage) {
			at := s.serve(Options{Guard: protocol.Config{Required: true, WriteProblem: func(p protocol.Problem) protocol.Response {
				return protocol.Response{
					Status: 418, Body: []byte("own: " + string(p.Code)),
					Header: protocol.NewHeader(protocol.Field{Name: "Content-Type", Value: "text/x-own"}, protocol.Field{Name: "X-Own", Value: "1"}),
				}
			}}})
			a := at.send(s.post(created).withKeys())
			if a.status != 418 || a.body != "own: key-missing" || a.value("Content-Type") != "text/x-own" || a.value("X-Own") != "1" {
				at.Errorf("answered %v", a)
			}
			if a.value("Cache-Control") != "no-store" {
				at.Errorf("Cache-Control is %q, want no-store", a.value("Cache-Control"))
			}
			at.ran(0)
		},
	},
	{
		conformance.Case{ID: "R46", Rule: "A problem is not to be cached, says when to retry only where that makes sense, and names the configured field.", Source: "RFC 9111 5.2, RFC 9110 10.2.3"},
		func(s *stage) {
			at := s.serve(Options{Guard: protocol.Config{Header: "X-Once", Required: true}})
			c := s.post(held).withKeys()
			keyed := c.with("X-Once", s.key)
			at.begin(keyed)
			at.holds()
			for code, c := range map[protocol.Code]call{
				protocol.CodeKeyMissing: c, protocol.CodeKeyInvalid: c.with("X-Once", "not a key"), protocol.CodeInProgress: keyed,
				protocol.CodeKeyReused: keyed.withBody("another"), protocol.CodeScopeMissing: keyed.withTenant(""),
			} {
				p := at.wantProblem(at.send(c), c, code) // demands Cache-Control and Retry-After
				if !strings.Contains(p.Detail, "X-Once") || strings.Contains(p.Detail, keyField) {
					at.Errorf("the detail of %s is %q, which does not name the configured field", code, p.Detail)
				}
			}
		},
	},
}
