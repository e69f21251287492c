package adaptertest

import (
	"strconv"
	"strings"

	"github.com/reprise-go/reprise/conformance"
)

// framingCases send requests whose end or fields two servers may read differently. Such a
// request is refused, and the bytes that follow it on the connection are never read as
// another request.
var framingCases = []testCase{
	{
		conformance.Case{ID: "R7c", Rule: "A trailer does not change the principal: the request belongs to the one that its header names.", Source: "RFC 9110 6.5.1"},
		func(e *env) {
			srv := e.serve(Options{})
			victim := e.post(created)
			c := victim.withoutTenant()
			w := srv.dial()
			w.write(c.chunked(4, line{TenantHeader, victim.tenant}))
			first := w.read()
			srv.wantRun(first)
			srv.replays(c, first) // it is a request of the default tenant
			if a := srv.run(victim); a.exec() != 2 {
				srv.Errorf("the key of the victim is taken: %v", a)
			}
		},
	},
	{
		conformance.Case{ID: "R27f", Rule: "A request with two lengths, or with a length that is not a number, is refused and the connection is closed.", Source: "RFC 9112 6.3"},
		func(e *env) {
			hidden := e.hiddenRequest()
			size := strconv.Itoa(len(hidden))
			e.refusesFraming(
				framedCall{[]line{{"Content-Length", "0"}, {"Content-Length", size}}, hidden},
				framedCall{[]line{{"Content-Length", size}, {"Content-Length", "0"}}, hidden},
				framedCall{[]line{{"Content-Length", size + ", 0"}}, hidden},
				framedCall{[]line{{"Content-Length", "0, " + size}}, hidden},
				framedCall{[]line{{"Content-Length", "+" + size}}, hidden},
				framedCall{[]line{{"Content-Length", "0x0"}}, hidden},
				framedCall{[]line{{"Content-Length", "-1"}}, hidden},
			)
		},
	},
	{
		conformance.Case{ID: "R27g", Rule: "A request with a transfer coding other than chunked is refused and the connection is closed.", Source: "RFC 9112 6.1"},
		func(e *env) {
			hidden := "0\r\n\r\n" + e.hiddenRequest()
			e.refusesFraming(
				framedCall{[]line{{"Transfer-Encoding", "gzip"}}, hidden},
				framedCall{[]line{{"Transfer-Encoding", "gzip, chunked"}}, hidden},
				framedCall{[]line{{"Transfer-Encoding", "xchunked"}}, hidden},
				framedCall{[]line{{"Transfer-Encoding", "chunked, identity"}}, hidden},
				framedCall{[]line{{"Transfer-Encoding", "\x0bchunked"}}, hidden},
				framedCall{[]line{{"Transfer-Encoding", "chunked"}, {"Transfer-Encoding", "chunked"}}, hidden},
				framedCall{[]line{{"Transfer-Encoding", "chunked"}, {"Transfer-Encoding", "identity"}}, hidden},
			)
		},
	},
	{
		conformance.Case{ID: "R27h", Rule: "A request with a length and a transfer coding is refused and the connection is closed.", Source: "RFC 9112 6.1"},
		func(e *env) {
			hidden := "0\r\n\r\n" + e.hiddenRequest()
			size := strconv.Itoa(len(hidden))
			e.refusesFraming(
				framedCall{[]line{{"Content-Length", size}, {"Transfer-Encoding", "chunked"}}, hidden},
				framedCall{[]line{{"Transfer-Encoding", "chunked"}, {"Content-Length", size}}, hidden},
				framedCall{[]line{{"Transfer-Encoding", "chunked"}, {"Content-Length", "5"}}, hidden},
			)
		},
	},
	{
		conformance.Case{ID: "R27i", Rule: "A request with a folded line is refused and the connection is closed.", Source: "RFC 9112 5.2"},
		func(e *env) {
			hidden := e.hiddenRequest()
			size := strconv.Itoa(len(hidden))
			e.refusesFraming(
				framedCall{[]line{{"X-Folded", "1\r\n " + strings.Repeat("x", 50)}, {"Content-Length", size}}, hidden},
				framedCall{[]line{{"X-Folded", "1\r\n\tContent-Length: 0"}, {"Content-Length", size}}, hidden},
				framedCall{[]line{{"Content-Length", "\r\n " + size}}, hidden},
			)
		},
	},
	{
		conformance.Case{ID: "R27j", Rule: "A request with an invalid byte in a field name, or a line end in a value, is refused, even if it hides the only key.", Source: "RFC 9110 5.1, 5.5"},
		func(e *env) {
			hidden := e.hiddenRequest()
			size := strconv.Itoa(len(hidden))
			e.refusesFraming(
				framedCall{[]line{{"Content-Length\x00", "0"}, {"Content-Length", size}}, hidden},
				framedCall{[]line{{"X-One", "1\rTransfer-Encoding: chunked"}, {"Content-Length", size}}, hidden},
				framedCall{[]line{{"X-Zero", "\x00"}, {"Content-Length", size}}, hidden},
			)
			srv := e.serve(Options{})
			c := e.post(created).freshKey()
			for _, hiding := range []line{{keyField + "\x00", c.keys[0]}, {"\x0b" + keyField, c.keys[0]}, {"X-One", "1\r" + keyField + ": " + c.keys[0]}} {
				w := srv.dial()
				w.write(c.withKeys().with(hiding.name, hiding.value).bytes())
				if !w.wantRefusal(400) {
					srv.Errorf("with the line %q", hiding.name+": "+hiding.value)
				}
			}
			srv.wantUnused(c)
		},
	},
}

// framedCall is the framing fields of a keyed request, and the bytes behind its header
// section.
type framedCall struct {
	framing []line
	behind  string
}

// hiddenRequest returns a whole request of the same operation with another key.
func (e *env) hiddenRequest() string { return e.post(created).freshKey().bytes() }

// refusesFraming demands that each of the requests is refused by closing the connection,
// with a response or without, and that neither it nor a request hidden in it runs.
func (e *env) refusesFraming(calls ...framedCall) {
	e.Helper()
	srv := e.serve(Options{})
	for _, c := range calls {
		w := srv.dial()
		w.write(e.post(created).head(c.framing...) + c.behind)
		w.closeWrite()
		if !w.wantRefusal(400, 501) {
			srv.Errorf("framed by %q", c.framing)
		}
		if a, err := w.tryRead(); !isClosed(err) {
			srv.Errorf("framed by %q: there is another answer: %v, %v", c.framing, a, err)
		}
	}
	srv.wantUnused(e.post(created))
}
