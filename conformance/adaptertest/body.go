package adaptertest

import (
	"strings"
	"time"

	"github.com/reprise-go/reprise/conformance"

	"github.com/reprise-go/reprise/core/protocol"
)

// echoes is a program whose handler tells what it read.
var echoes = Program{Echo: true, Status: 200}

var bodyCases = []testCase{
	{
		conformance.Case{ID: "R26a", Rule: "A keyed body over the limit is refused and not stored, up to the limit it is not.", Source: "RFC 9110 15.5.14"},
		func(s *stage) {
			at := s.serve(Options{Guard: protocol.Config{MaxRequestBody: 1000}})
			c := s.post(echoes)
			at.refuses(c.withBody(strings.Repeat("x", 1001)), protocol.CodeRequestTooLarge)
			at.untouched()
			exact := c.withBody(strings.Repeat("x", 1000))
			first := at.run(exact)
			at.wantBody(first, exact.body)
			at.replays(exact, first)
			at.refuses(c.withBody(strings.Repeat("x", 1001)), protocol.CodeRequestTooLarge)
			at.ran(1)
		},
	},
	{
		conformance.Case{ID: "R26b", Rule: "A keyed body over the limit is refused without a declared length, too.", Source: "RFC 9110 15.5.14"},
		func(s *stage) {
			at := s.serve(Options{Guard: protocol.Config{MaxRequestBody: 1000}})
			for _, size := range []int{1, 100, 5000} {
				c := s.post(echoes).withBody(strings.Repeat("x", 1001))
				w := at.dial()
				w.write(c.chunked(size))
				at.wantProblem(w.read(), c, protocol.CodeRequestTooLarge)
			}
			at.untouched()
			exact := s.post(echoes).withBody(strings.Repeat("x", 1000))
			w := at.dial()
			w.write(exact.chunked(64))
			first := w.read()
			at.wantRun(first)
			at.wantBody(first, exact.body)
			at.ran(1)
		},
	},
	{
		conformance.Case{ID: "R26c", Rule: "A declared length over the limit is refused before the body has come.", Source: "RFC 9110 15.5.14"},
		func(s *stage) {
			at := s.serve(Options{Guard: protocol.Config{MaxRequestBody: 1000}})
			c := s.post(echoes)
			w := at.dial()
			w.write(c.head(line{"Content-Length", "1000000000"}))
			at.wantProblem(w.read(), c, protocol.CodeRequestTooLarge)
			at.ran(0)
			at.untouched()
		},
	},
	{
		conformance.Case{ID: "R26d", Rule: "The limit is one of keyed requests: without a key the handler gets all of a larger body.", Source: "profile"},
		func(s *stage) {
			at := s.serve(Options{Guard: protocol.Config{MaxRequestBody: 1000}})
			large := string(PatternBody(100_000))
			at.wantBody(at.run(s.post(echoes).withKeys().withBody(large)), large)
			at.wantBody(at.run(s.post(echoes).withMethod("PUT").withBody(large)), large)
			at.untouched()
		},
	},
	{
		conformance.Case{ID: "R27a", Rule: "A body that ends before its declared length runs nothing and stores nothing.", Source: "RFC 9112 8"},
		func(s *stage) {
			at := s.serve(Options{})
			c := s.post(echoes)
			for _, sent := range []string{"", c.body[:1], c.body[:len(c.body)-1]} {
				w := at.dial()
				w.write(c.head(line{"Content-Length", "12"}) + sent)
				w.closeWrite()
				w.wantRefusal(400)
			}
			at.wantUnused(c)
		},
	},
	{
		conformance.Case{ID: "R27b", Rule: "A body whose chunks break off, or are none, runs nothing and stores nothing.", Source: "RFC 9112 8"},
		func(s *stage) {
			at := s.serve(Options{})
			c := s.post(echoes)
			for _, sent := range []string{"", "4\r\n{\"am", "4\r\n{\"am\r\n", "zz\r\n{}\r\n0\r\n\r\n", "4\r\n{\"amX\r\n0\r\n\r\n", "-1\r\n\r\n0\r\n\r\n"} {
				w := at.dial()
				w.write(c.head(line{"Transfer-Encoding", "chunked"}) + sent)
				w.closeWrite()
				if !w.wantRefusal(400) {
					at.Errorf("after the chunks %q", sent)
				}
			}
			at.wantUnused(c)
		},
	},
	{
		conformance.Case{ID: "R27c", Rule: "The handler reads the body exactly as it was sent.", Source: "draft 2.6"},
		func(s *stage) {
			at := s.serve(Options{})
			for _, body := range []string{"", "x", string(PatternBody(256)), string(PatternBody(5000)), string(PatternBody(1 << 20)), "\r\n0\r\n\r\n"} {
				c := s.post(echoes).withBody(body).freshKey()
				first := at.run(c)
				at.wantBody(first, body)
				at.replays(c, first)
				w := at.dial()
				w.write(c.freshKey().chunked(1111))
				at.wantBody(w.read(), body)
			}
		},
	},
	{
		conformance.Case{ID: "R27d", Rule: "The handler sees the request as it was sent: method, path and query.", Source: "draft 2.6"},
		func(s *stage) {
			at := s.serve(Options{})
			for _, method := range []string{"POST", "PATCH"} {
				c := s.post(echoes).withMethod(method).withTarget("/t/a%2Fb/c?y=1+2&x=%2F").freshKey()
				a := at.dial().ask(c)
				at.wantRun(a)
				if e := at.echo(a); e.Method != method || e.RawPath != "/t/a%2Fb/c" || e.RawQuery != "y=1+2&x=%2F" {
					at.Errorf("the handler sees %+v", e)
				}
			}
		},
	},
	{
		conformance.Case{ID: "R27e", Rule: "A body whose trailer section breaks off runs nothing and stores nothing.", Source: "RFC 9112 8"},
		func(s *stage) {
			at := s.serve(Options{})
			c := s.post(echoes)
			for _, sent := range []string{"4\r\n{\"am\r\n0\r\n", "4\r\n{\"am\r\n0\r\nX-Checksum: a"} {
				w := at.dial()
				w.write(c.head(line{"Transfer-Encoding", "chunked"}) + sent)
				w.closeWrite()
				w.wantRefusal(400)
			}
			at.wantUnused(c)
		},
	},
	{
		conformance.Case{ID: "R28a", Rule: "What the header alone refuses is refused before the client is asked to continue.", Source: "RFC 9110 10.1.1"},
		func(s *stage) {
			at := s.serve(Options{Guard: protocol.Config{Required: true, MaxRequestBody: 1000}})
			c := s.post(echoes).with("Expect", "100-continue")
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
				w := at.dial()
				w.write(refusal.call.head(line{"Content-Length", refusal.length}))
				a := w.read()
				at.wantProblem(a, refusal.call, refusal.code)
				if len(a.early) > 0 {
					at.Errorf("the client is asked to continue before it is told %s", refusal.code)
				}
			}
			at.ran(0)
			at.untouched()
		},
	},
	{
		conformance.Case{ID: "R28b", Rule: "A client that waits to be asked for its body is asked, and its request runs.", Source: "RFC 9110 10.1.1"},
		func(s *stage) {
			at := s.serve(Options{})
			c := s.post(echoes).with("Expect", "100-continue")
			w := at.dial()
			w.write(c.head(line{"Content-Length", "12"}))
			w.await("HTTP/1.1 100 Continue\r\n\r\n")
			w.write(c.body)
			first := w.read()
			at.wantRun(first)
			at.wantBody(first, c.body)
			at.replays(s.post(echoes), first)
		},
	},
	{
		conformance.Case{ID: "R47a", Rule: "After an answer to a request whose body was not read, the connection serves the next request or is closed in order.", Source: "RFC 9112 9.6"},
		func(s *stage) {
			at := s.serve(Options{Guard: protocol.Config{MaxRequestBody: 1000}})
			for _, size := range []int{2000, 100_000} {
				large := s.post(created).withBody(strings.Repeat("x", size))
				for _, refused := range []struct {
					bytes  string
					status int
				}{
					{large.bytes(), 413},
					{large.chunked(700), 413},
					{large.withKeys("not a key").bytes(), 400},
					{large.withKeys("not a key").chunked(700), 400},
					{large.withTenant("").bytes(), 403},
				} {
					at.dial().wantOrder(refused.bytes, refused.status)
				}
			}
			at.ran(0)
		},
	},
	{
		conformance.Case{ID: "R47b", Rule: "After a replay and after a refusal the connection serves the next request.", Source: "RFC 9112 9.3"},
		func(s *stage) {
			at := s.serve(Options{})
			c := s.post(created)
			w := at.dial()
			first := w.ask(c)
			at.wantReplay(w.ask(c), first)
			other := c.withBody("another")
			at.wantProblem(w.ask(other), other, protocol.CodeKeyReused)
			w.write(c.chunked(3))
			at.wantReplay(w.read(), first)
			at.wantReplay(w.ask(c), first)
			at.ran(1)
		},
	},
}

// wantRefusal demands that the answer is a refusal with this status, or that the connection is closed without one.
func (w *wire) wantRefusal(status int) bool {
	w.stage.Helper()
	a, err := w.tryRead()
	if err != nil && isClosed(err) || err == nil && a.status == status {
		return true
	}
	w.stage.Errorf("answered %v, %v; want %d or a closed connection", a, err, status)
	return false
}

// wantUnused demands that no request with the key of c has run or is stored: the next one is the first.
func (at *site) wantUnused(c call) {
	at.Helper()
	at.ran(0)
	at.untouched()
	first := at.run(c)
	if first.exec() != 1 {
		at.Errorf("the first whole request is run %d", first.exec())
	}
	at.replays(c, first)
}

// wantOrder sends a request and demands the whole of its answer, and then either an answer to the next one or the end of the
// connection: no bytes of the body taken for a request, no end in the middle.
func (w *wire) wantOrder(request string, status int) {
	w.stage.Helper()
	w.write(request)
	if a := w.read(); a.status != status {
		w.stage.Fatalf("answered %v, want %d", a, status)
	}
	w.write("GET /healthz HTTP/1.1\r\nHost: conformance.test\r\nConnection: close\r\n\r\n")
	_ = w.conn.SetReadDeadline(time.Now().Add(w.stage.fixture.Patience))
	next, err := w.in.answer(false)
	if err == nil && next.status != 200 || err != nil && !isClosed(err) {
		w.stage.Errorf("after %d the next request is answered %v, %v", status, next, err)
	}
}
