package adaptertest

import (
	"strings"
	"time"

	"github.com/reprise-go/reprise/conformance"

	"github.com/reprise-go/reprise/core/protocol"
)

// echoes is a program whose handler reports the request as it read it.
var echoes = Program{Echo: true, Status: 200}

var bodyCases = []testCase{
	{
		conformance.Case{ID: "R26e", Rule: "A body over the limit of an outer layer is refused too: nothing runs and nothing is stored.", Source: "RFC 9110 15.5.14"},
		func(e *env) {
			srv := e.serve(Options{OuterLimit: 1000})
			c := e.post(echoes).withBody(strings.Repeat("x", 1001))
			for _, request := range []string{c.bytes(), c.chunked(300)} {
				w := srv.dial()
				w.write(request)
				if a := w.read(); a.status != 413 {
					srv.Errorf("answered %v, want 413", a)
				}
			}
			srv.ran(0)
			srv.wantNoStoreCall()
			exact := c.withBody(strings.Repeat("x", 1000))
			srv.wantBody(srv.run(exact), exact.body)
		},
	},
	{
		conformance.Case{ID: "R27c", Rule: "The handler reads the body exactly as it was sent.", Source: "draft 2.6"},
		func(e *env) {
			srv := e.serve(Options{})
			for _, body := range []string{"", "x", string(PatternBody(256)), string(PatternBody(5000)), string(PatternBody(70_000)), "\r\n0\r\n\r\n"} {
				c := e.post(echoes).withBody(body).freshKey()
				first := srv.run(c)
				srv.wantBody(first, body)
				srv.replays(c, first)
				w := srv.dial()
				w.write(c.freshKey().chunked(1111))
				srv.wantBody(w.read(), body)
			}
		},
	},
	{
		conformance.Case{ID: "R27d", Rule: "The handler sees the request as it was sent: method, path and query.", Source: "draft 2.6"},
		func(e *env) {
			srv := e.serve(Options{})
			for _, method := range []string{"POST", "PATCH"} {
				c := e.post(echoes).withMethod(method).withTarget("/t/a%2Fb/c?y=1+2&x=%2F").freshKey()
				a := srv.send(c)
				srv.wantRun(a)
				if e := srv.echo(a); e.Method != method || e.RawPath != "/t/a%2Fb/c" || e.RawQuery != "y=1+2&x=%2F" {
					srv.Errorf("the handler sees %+v", e)
				}
			}
		},
	},
	{
		conformance.Case{ID: "R28a", Rule: "A request that its header alone rules out is refused before the client is asked to continue.", Source: "RFC 9110 10.1.1"},
		func(e *env) {
			srv := e.serve(Options{Guard: protocol.Config{Required: true, Limits: protocol.Limits{RequestBody: 1000}}})
			c := e.post(echoes).with("Expect", "100-continue")
			for _, refusal := range []struct {
				call   call
				length string
				code   protocol.Code
			}{
				{c.withKeys(), "12", protocol.CodeKeyMissing},
				{c.withKeys("not a key"), "12", protocol.CodeKeyInvalid},
				{c.withTenant(""), "12", protocol.CodeScopeMissing},
				{c, "1001", protocol.CodeRequestTooLarge},
			} {
				w := srv.dial()
				w.write(refusal.call.head(line{"Content-Length", refusal.length}))
				a := w.read()
				srv.wantProblem(a, refusal.call, refusal.code)
				if len(a.early) > 0 {
					srv.Errorf("the client is asked to continue before it is told %s", refusal.code)
				}
			}
			srv.ran(0)
			srv.wantNoStoreCall()
			w := srv.dial()
			c = c.freshKey().withBody("waited for it")
			w.write(c.head(line{"Content-Length", "13"}))
			w.await("HTTP/1.1 100 Continue\r\n\r\n")
			w.write(c.body)
			srv.wantRun(w.read())
		},
	},
	{
		conformance.Case{ID: "R50a", Rule: "A body of which a layer outside consumed a part is refused, unless the handler still gets all of it.", Source: "trap: the replay of another request's body"},
		func(e *env) {
			for _, layer := range []OuterBody{Drains, Binds, Decodes} {
				srv := e.serve(Options{OuterBody: layer})
				for _, size := range []int{100, 513, 1537} { // a decoder leaves the last byte of the latter two
					body := `{"amount":1,"pad":"` + strings.Repeat("x", size-22) + "\"}\n"
					c := e.post(echoes).with("Content-Type", "application/json").withBody(body)
					srv.wantWholeOrRefused(c.freshKey(), call.bytes)
					srv.wantWholeOrRefused(c.freshKey().with("Content-Encoding", "identity"), call.bytes)
					srv.wantWholeOrRefused(c.freshKey(), func(c call) string { return c.chunked(len(c.body)) })
				}
			}
		},
	},
	{
		conformance.Case{ID: "R47a", Rule: "After a response to a request whose body was not read, the connection serves the next request or is closed cleanly.", Source: "RFC 9112 9.6"},
		func(e *env) {
			srv := e.serve(Options{Guard: protocol.Config{Limits: protocol.Limits{RequestBody: 1000}}})
			for _, size := range []int{2000, 100_000} {
				large := e.post(created).withBody(strings.Repeat("x", size))
				for _, refused := range []struct {
					bytes  string
					status int
				}{
					{large.bytes(), 413},
					{large.chunked(700), 413},
					{large.withKeys("not a key").bytes(), 400},
					{large.withKeys("not a key").chunked(700), 400},
					{large.withTenant("").bytes(), 403},
					{large.head(line{"Transfer-Encoding", "chunked"}) + "4\r\nbody\r\nzz\r\n{}\r\n0\r\n\r\n", 400}, // its rest is not a chunk
				} {
					srv.dial().wantOrder(refused.bytes, refused.status)
				}
			}
			srv.ran(0)
			srv.wantNoStoreCall()
		},
	},
}

// wantWholeOrRefused sends a request whose body a layer outside may have consumed, and
// then one with another body and the same key. Where a handler runs, it reads the whole
// body, and the other request is refused.
func (srv *server) wantWholeOrRefused(c call, send func(call) string) {
	srv.Helper()
	other := c.withBody(strings.Replace(c.body, "1", "2", 1))
	before := srv.executions()
	for i, each := range []call{c, other} {
		w := srv.dial()
		w.write(send(each))
		a := w.read()
		switch {
		case a.status == 400:
			srv.wantProblem(a, each, protocol.CodeRequestInvalid)
		case i == 0:
			srv.wantRun(a)
			srv.wantBody(a, c.body)
			before++
		default:
			srv.wantProblem(a, each, protocol.CodeKeyReused)
		}
	}
	srv.ran(before)
}

// wantOrder sends a request and demands the whole of its response, and then either an
// answer to the next one or the end of the connection: no bytes of the body taken for a
// request, no end in the middle.
func (w *wire) wantOrder(request string, status int) {
	w.srv.Helper()
	w.write(request)
	if a := w.read(); a.status != status {
		w.srv.Fatalf("answered %v, want %d", a, status)
	}
	w.write("GET /healthz HTTP/1.1\r\nHost: conformance.test\r\nConnection: close\r\n\r\n")
	_ = w.conn.SetReadDeadline(time.Now().Add(w.srv.fixture.Patience))
	next, err := w.in.answer(false)
	if err == nil && next.status != 200 || err != nil && !isClosed(err) {
		w.srv.Errorf("after %d the next request is answered %v, %v", status, next, err)
	}
}
