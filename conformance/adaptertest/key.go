package adaptertest

import (
	"strings"

	"github.com/reprise-go/reprise/conformance"

	"github.com/reprise-go/reprise/core/protocol"
)

// created is a program with a response that is kept.
var created = Program{Status: 201, Headers: []Pair{{"Location", "/orders/1"}, {"Content-Type", "application/json"}}, Body: `{"id":1}`}

var keyCases = []testCase{
	{
		conformance.Case{ID: "R1e", Rule: "A request without a key is passed on before its body arrives: only the handler reads it.", Source: "profile"},
		func(e *env) {
			srv := e.serve(Options{})
			held := created
			held.Effect = true
			for _, c := range []call{e.post(held).withKeys(), e.post(held).withMethod("PUT")} {
				w := srv.dial()
				w.write(c.head(line{"Content-Length", "10"}))
				srv.waitForHandler()
				w.write("0123456789")
				srv.releaseHandlers()
				srv.wantRun(w.read())
			}
			srv.wantNoStoreCall()
		},
	},
	{
		conformance.Case{ID: "R6a", Rule: "A field that is present but empty, and more than one field line with a key, are refused, even if the lines are equal.", Source: "RFC 9651 3, profile"},
		func(e *env) {
			srv := e.serve(Options{})
			lists := [][]string{{e.key, e.key}, {e.key, "other"}, {e.key, ""}, {"", e.key}, {`"a"`, `"b"`}, {e.key, e.key, e.key}}
			for _, empty := range []string{"", " ", "\t", `""`, `"";a=1`, ` "" `} {
				lists = append(lists, []string{empty})
			}
			for _, keys := range lists {
				c := e.post(created).withKeys(keys...)
				srv.wantProblem(srv.send(c), c, protocol.CodeKeyInvalid)
			}
			apart := e.post(created).with("X-Between", "1").with("idempotency-key", "other")
			srv.wantProblem(srv.send(apart), apart, protocol.CodeKeyInvalid)
			srv.ran(0)
			srv.wantNoStoreCall()
		},
	},
	{
		conformance.Case{ID: "R7a", Rule: "A key in a trailer is ignored: the request has none.", Source: "RFC 9110 6.5.1"},
		func(e *env) {
			srv := e.serve(Options{})
			c := e.post(created).withKeys()
			for range 2 {
				w := srv.dial()
				w.write(c.chunked(4, line{keyField, e.key}))
				srv.wantRun(w.read())
			}
			srv.ran(2)
			srv.wantNoStoreCall()
		},
	},
	{
		conformance.Case{ID: "R48b", Rule: "A request whose body has no key passes, and its handler reads all of the body.", Source: "profile"},
		func(e *env) {
			srv := e.serve(Options{Guard: protocol.Config{Key: protocol.KeyField("/meta/idempotency_key")}})
			c := e.post(echoes).withKeys().with("Content-Type", "application/json").withTenant("").withBody(`{"amount":1,"pad":"` + strings.Repeat("x", 100_000) + `"}`)
			for range 2 {
				srv.wantBody(srv.run(c), c.body)
			}
			w := srv.dial()
			w.write(c.chunked(3000))
			a := w.read()
			srv.wantRun(a)
			srv.wantBody(a, c.body)
			empty := c.withBody("")
			srv.wantBody(srv.run(empty), "")
			srv.run(c.withMethod("PUT").withBody("not JSON"))
			srv.wantNoStoreCall()
		},
	},
}
