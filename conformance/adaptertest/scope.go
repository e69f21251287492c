package adaptertest

import (
	"context"
	"strings"

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

var problemCases = []testCase{
	{
		conformance.Case{ID: "R45a", Rule: "A problem has a stable type and a constant title, and contains nothing of the request.", Source: "RFC 9457 3"},
		func(e *env) {
			srv := e.serve(Options{Guard: protocol.Config{Required: true, Limits: protocol.Limits{RequestBody: 1000}}})
			c := e.post(created).withTarget("/t/op?secret=in-the-query").with("X-Secret-Field", "in-the-header")
			seen := map[protocol.Code]problem{}
			for i, key := range []string{"first-secret-key", "other-secret-key"} {
				c := c.withKeys(key).withTenant(e.tenant + "-secret-" + key).withBody("secret body of " + key)
				srv.run(c)
				for code, c := range inOrder(map[protocol.Code]call{
					protocol.CodeKeyMissing:      c.withKeys(),
					protocol.CodeKeyInvalid:      c.withKeys(key + " is not a key"),
					protocol.CodeScopeMissing:    c.withTenant(""),
					protocol.CodeRequestTooLarge: c.withBody(strings.Repeat(c.body, 100)),
					protocol.CodeKeyReused:       c.withBody("another secret body"),
				}) {
					a := srv.send(c)
					p := srv.wantProblem(a, c, code)
					if all := a.String() + a.body; strings.Contains(all, "secret") {
						srv.Errorf("%s has something of the request: %v", code, a)
					}
					if i > 0 && p != seen[code] {
						srv.Errorf("%s is %+v, and was %+v", code, p, seen[code])
					}
					seen[code] = p
				}
			}
		},
	},
	{
		conformance.Case{ID: "R45b", Rule: "The URI of problem types can be configured.", Source: "RFC 9457 3.1.1"},
		func(e *env) {
			srv := e.serve(Options{Guard: protocol.Config{Required: true, Problems: protocol.ProblemFormat{Base: "https://errors.example.com/idempotency/"}}})
			c := e.post(created).withKeys()
			a := srv.send(c)
			if p := srv.wantProblem(a, c, protocol.CodeKeyMissing); p.Type != "https://errors.example.com/idempotency/key-missing" {
				srv.Errorf("the type is %q", p.Type)
			}
			if link := a.value("Link"); !strings.Contains(link, "<https://errors.example.com/idempotency/key-missing>") {
				srv.Errorf("the link is %q", link)
			}
		},
	},
	{
		conformance.Case{ID: "R45c", Rule: "The form of problems can be configured, and is sent unchanged.", Source: "profile"},
		func(e *env) {
			srv := e.serve(Options{Guard: protocol.Config{Required: true, Problems: protocol.ProblemFormat{Write: func(_ context.Context, _ *protocol.Request, p protocol.Problem) protocol.Response {
				return protocol.Response{
					Status: 418, Body: []byte("own: " + string(p.Code)),
					Header: protocol.NewHeader(protocol.Field{Name: "Content-Type", Value: "text/x-own"}, protocol.Field{Name: "X-Own", Value: "1"}),
				}
			}}}})
			a := srv.send(e.post(created).withKeys())
			if a.status != 418 || a.body != "own: key-missing" || a.value("Content-Type") != "text/x-own" || a.value("X-Own") != "1" {
				srv.Errorf("answered %v", a)
			}
			if a.value("Cache-Control") != "no-store" {
				srv.Errorf("Cache-Control is %q, want no-store", a.value("Cache-Control"))
			}
			srv.ran(0)
		},
	},
	{
		conformance.Case{ID: "R45d", Rule: "Problems.Write sees the request.", Source: "profile"},
		func(e *env) {
			envelope := func(_ context.Context, r *protocol.Request, p protocol.Problem) protocol.Response {
				language := strings.Join(r.Header.Values("Accept-Language"), ", ")
				return protocol.Response{Body: []byte(r.Method + " " + r.Path + " in " + language + ": " + string(p.Code))}
			}
			srv := e.serve(Options{Guard: protocol.Config{Problems: protocol.ProblemFormat{Write: envelope}}})
			c := e.post(created).withMethod("PATCH").with("Accept-Language", "de")
			if a := srv.send(c.withKeys("not a key")); a.status != 400 || a.body != "PATCH /t/op in de: key-invalid" {
				srv.Errorf("answered %v", a)
			}
			srv.run(c)
			if a := srv.send(c.withBody("another")); a.status != 422 || a.body != "PATCH /t/op in de: key-reused" {
				srv.Errorf("answered %v", a)
			}
		},
	},
	{
		conformance.Case{ID: "R46", Rule: "A problem forbids caching, has Retry-After only where a retry makes sense, and mentions the configured field.", Source: "RFC 9111 5.2, RFC 9110 10.2.3"},
		func(e *env) {
			srv := e.serve(Options{Guard: protocol.Config{Key: protocol.KeyHeader("X-Once"), Required: true}})
			c := e.post(held).withKeys()
			keyed := c.with("X-Once", e.key)
			srv.begin(keyed)
			srv.waitForHandler()
			for code, c := range inOrder(map[protocol.Code]call{
				protocol.CodeKeyMissing: c, protocol.CodeKeyInvalid: c.with("X-Once", "not a key"), protocol.CodeInProgress: keyed,
				protocol.CodeKeyReused: keyed.withBody("another"), protocol.CodeScopeMissing: keyed.withTenant(""),
			}) {
				p := srv.wantProblem(srv.send(c), c, code) // demands Cache-Control and Retry-After
				if !strings.Contains(p.Detail, "X-Once") || strings.Contains(p.Detail, keyField) {
					srv.Errorf("the detail of %s is %q, which does not name the configured field", code, p.Detail)
				}
			}
		},
	},
}
