package adaptertest

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"github.com/reprise-go/reprise/conformance"

	"github.com/reprise-go/reprise/core/protocol"
)

var fingerprintCases = []testCase{
	{
		conformance.Case{ID: "R24a", Rule: "Each of these parts makes a request different: method, path, query, media type, content coding, body.", Source: "draft 2.4, profile"},
		func(e *env) {
			srv := e.serve(Options{})
			base := e.post(created).withTarget("/t/op?a=1&b=2").with("Content-Type", "text/plain; charset=utf-8").with("Content-Encoding", "x-own")
			typed := func(media, coding string) call {
				c := e.post(created).withTarget(base.target)
				if media != "" {
					c = c.with("Content-Type", media)
				}
				return c.with("Content-Encoding", coding)
			}
			first := srv.run(base)
			for what, other := range inOrder(map[string]call{
				"method":          base.withMethod("PATCH"),
				"path":            base.withTarget("/t/other?a=1&b=2"),
				"end of the path": base.withTarget("/t/op/?a=1&b=2"),
				"query":           base.withTarget("/t/op?a=1&b=3"),
				"order of query":  base.withTarget("/t/op?b=2&a=1"),
				"no query":        base.withTarget("/t/op"),
				"media type":      typed("text/html; charset=utf-8", "x-own"),
				"no media type":   typed("", "x-own"),
				"content coding":  typed("text/plain; charset=utf-8", "x-other"),
				"body":            base.withBody(`{"amount":2}`),
				"longer body":     base.withBody(base.body + " "),
				"shorter body":    base.withBody(base.body[1:]),
				"no body":         base.withBody(""),
			}) {
				if a := srv.send(other); a.status != 422 {
					srv.Errorf("another %s is answered %v, want 422", what, a)
				}
			}
			srv.replays(base, first)
			srv.ran(1)
		},
	},
	{
		conformance.Case{ID: "R24b", Rule: "The path is compared as it was sent: escapes are not decoded, and nothing is cleaned.", Source: "profile"},
		func(e *env) {
			srv := e.serve(Options{})
			c := e.post(created).withTarget("/t/a%2Fb?q=%20")
			first := srv.send(c)
			srv.wantRun(first)
			for _, target := range []string{"/t/a/b?q=%20", "/t/a%2fb?q=%20", "/t/a%2Fb?q=+", "/t/a%2Fb?q=%20&", "/t/a%2Fb?"} {
				other := c.withTarget(target)
				srv.wantProblem(srv.send(other), other, protocol.CodeKeyReused)
			}
			srv.wantReplay(srv.send(c), first)
		},
	},
	{
		conformance.Case{ID: "R24c", Rule: "ID and fingerprint are those of the package protocol, so processes with different adapters share their records.", Source: "profile"},
		func(e *env) {
			srv := e.serve(Options{})
			plain := e.post(created)
			for _, c := range []call{
				plain,
				plain.withMethod("PATCH").withTarget("/t/a%2Fb/c;d?x=1&y=%20").with("Content-Type", `Text/Plain; Charset="UTF-8"`),
				plain.withBody(string(PatternBody(70_000))).with("Content-Encoding", "x-one, x-two"),
				plain.withBody(""),
				e.upload("b", title), // a form of one part is compared by its bytes, parsed or not
				e.upload("b", picture),
			} {
				c = c.freshKey()
				other := srv.claims(c)
				srv.wantProblem(srv.send(c), c, protocol.CodeInProgress) // and not that the key was used for another request
				other.completes("not a response")
				srv.wantProblem(srv.send(c), c, protocol.CodeRecordCorrupt)
			}
		},
	},
	{
		conformance.Case{ID: "R24g", Rule: "Fields in Fingerprint.Headers are compared: a request to one host does not get another host's response.", Source: "profile"},
		func(e *env) {
			srv := e.serve(Options{Guard: protocol.Config{Fingerprint: protocol.Fingerprinting{Headers: []string{"Host", "X-Version"}}}})
			c := e.post(created).withHost("live.test").with("X-Version", "1")
			first := srv.run(c)
			srv.refuses(c.withHost("sandbox.test"), protocol.CodeKeyReused)
			srv.refuses(e.post(created).withHost("live.test").with("X-Version", "2"), protocol.CodeKeyReused)
			srv.refuses(e.post(created).withHost("live.test"), protocol.CodeKeyReused)
			srv.replays(c.withHost("LIVE.test").with("X-Other", "2"), first)
			srv.ran(1)
		},
	},
}

// echo reads the body of a response to a program with echo.
func (e *env) echo(a answer) Echo {
	e.Helper()
	var got Echo
	if err := json.Unmarshal([]byte(a.body), &got); err != nil {
		e.Fatalf("the handler's echo is not JSON: %v", a)
	}
	return got
}

// wantBody demands that the handler which echoed read this body.
func (e *env) wantBody(a answer, body string) {
	e.Helper()
	sum := sha256.Sum256([]byte(body))
	if got := e.echo(a); got.BodyLength != len(body) || got.BodySHA256 != hex.EncodeToString(sum[:]) || got.BodyError != "" {
		e.Errorf("the handler read %d bytes, error %q; want the %d bytes that were sent", got.BodyLength, got.BodyError, len(body))
	}
}
