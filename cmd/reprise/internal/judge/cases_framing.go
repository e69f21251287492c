package judge

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/reprise-go/reprise/cmd/reprise/internal/judge/wire"
)

var framingCases = []Case{
	{
		ID: "framing/lengths", Sentence: "A request with two lengths, or a length that is not a number, is refused, and a request hidden behind it does not run.",
		Source: "RFC 9112 6.3; R27b", Levels: Levels{Should, Must, Should, Should},
		run: func(e *env) {
			hidden := e.hidden()
			size := strconv.Itoa(len(hidden))
			e.refusesFraming(hidden,
				lines("Content-Length", "0", size), lines("Content-Length", size, "0"), lines("Content-Length", size+", 0"),
				lines("Content-Length", "+"+size), lines("Content-Length", "0x0"), lines("Content-Length", "-1"))
		},
	},
	{
		ID: "framing/coding", Sentence: "A request with an unknown transfer coding is refused, and a request hidden behind it does not run.",
		Source: "RFC 9112 6.1; R27b", Levels: Levels{Should, Must, Should, Should},
		run: func(e *env) {
			e.refusesFraming("0\r\n\r\n"+e.hidden(),
				lines("Transfer-Encoding", "xchunked"), lines("Transfer-Encoding", "gzip"), lines("Transfer-Encoding", "chunked, identity"),
				lines("Transfer-Encoding", "\x0bchunked"))
		},
	},
	{
		ID: "framing/both", Sentence: "A request with a length and a transfer coding is refused, or ends the connection: what follows it is not taken for a request.",
		Source: "RFC 9112 6.1; R27b", Levels: Levels{Should, Should, Should, Should},
		run: func(e *env) {
			behind := "0\r\n\r\n" + e.hidden()
			size := strconv.Itoa(len(behind))
			for _, framing := range [][]wire.Field{
				{{Name: "Content-Length", Value: size}, {Name: "Transfer-Encoding", Value: "chunked"}},
				{{Name: "Transfer-Encoding", Value: "chunked"}, {Name: "Content-Length", Value: size}},
			} {
				if _, another := e.raw(e.post().Head(framing...) + behind); another != nil {
					e.fail("framed by %q: the hidden request is answered %v", framing, another)
				}
			}
			e.pipelined()
		},
	},
	{
		ID: "framing/folded", Sentence: "A folded line is refused or unfolded: it starts no field of its own.",
		Source: "RFC 9112 5.2; R27b", Levels: Levels{Should, Must, Should, Should},
		run: func(e *env) {
			hidden := e.hidden()
			framing := []wire.Field{{Name: "X-Folded", Value: "1\r\n\tContent-Length: 0"}, {Name: "Content-Length", Value: strconv.Itoa(len(hidden))}}
			if _, another := e.raw(e.post().Head(framing...) + hidden); another != nil {
				e.fail("the hidden request is answered %v", another)
			}
			e.pipelined()
			c, first := e.answered()
			folded := e.unkeyed().With("X-Folded", "1\r\n\t"+e.options.Header+": "+c.Value(e.options.Header))
			if a, _ := e.raw(folded.Bytes()); a != nil && a.OK() && !e.ran(first, a) {
				e.fail("the folded line is taken for the key: %v", a)
			}
		},
	},
	{
		ID: "framing/names", Sentence: "A request with an invalid field name is refused, even if it hides the only key, and a CR in a value starts no field.",
		Source: "RFC 9112 5.1, RFC 9110 5.5; R4", Levels: Levels{Should, Must, Should, Should},
		run: func(e *env) {
			key := e.form(uuid())
			for _, hiding := range []wire.Field{
				{Name: e.options.Header + " ", Value: key},
				{Name: e.options.Header + "\x00", Value: key},
				{Name: "\x0b" + e.options.Header, Value: key},
			} {
				if a, _ := e.raw(e.unkeyed().With(hiding.Name, hiding.Value).Bytes()); a != nil && a.Status < http.StatusBadRequest {
					e.fail("with the line %q: answered %v", hiding.Name+": "+hiding.Value, a)
				}
			}
			c, first := e.answered()
			hiding := e.unkeyed().With("X-One", "1\r"+e.options.Header+": "+c.Value(e.options.Header)) // RFC 9110 5.5 lets a space take the CR's place
			if a, _ := e.raw(hiding.Bytes()); a != nil && a.OK() && !e.ran(first, a) {
				e.fail("the key behind a CR is taken for the key: %v", a)
			}
		},
	},
	{
		ID: "framing/short", Sentence: "A request whose body ends early does not run, and its key stays free.",
		Source: "RFC 9112 8; R27", Levels: Levels{Should, Must, Should, Should},
		run: func(e *env) {
			for _, chunked := range []bool{false, true} {
				c := e.post()
				c.Chunked = chunked
				whole := c.Bytes()
				conn := e.dial()
				e.must(conn.Begin(whole[:len(whole)-6]))
				conn.CloseWrite()
				if a, err := conn.Read(c.Method); err == nil && a.Status == http.StatusLengthRequired {
					e.skip("the service takes no request without a length")
				} else if err == nil && a.Status < http.StatusBadRequest {
					e.fail("it is answered %v", a)
				} else if err != nil {
					e.endOf(err)
				}
				other := e.keyed(e.unkeyed(), c.Value(e.options.Header)).WithBody(e.options.Another)
				var a *wire.Answer
				if !e.waitFor(e.options.Slow+e.options.Client.Limits.Timeout/4, func() bool { a = e.ask(other); return a.OK() }) {
					e.fail("the key cannot be used for another body: %v", a)
				}
			}
		},
	},
	{
		ID: "framing/pipelined", Sentence: "Requests that follow each other without a pause are answered in order, each with its own answer.",
		Source: "RFC 9112 9.3.2", Levels: Levels{Should, Must, Should, Should},
		run: func(e *env) {
			one, two := e.post(), e.post()
			conn := e.dial()
			e.must(conn.Begin(one.Bytes() + two.Bytes() + one.Bytes()))
			var answers [3]*wire.Answer
			for i := range answers {
				a, err := conn.Read(one.Method)
				if wire.Closed(err) {
					e.skip("the service closes the connection after %d answers", i)
				}
				e.must(err)
				answers[i] = a
			}
			if !answers[0].OK() || !answers[1].OK() || !e.ran(answers[0], answers[1]) {
				e.fail("the first two are answered %v and %v", answers[0], answers[1])
			}
			if answers[2].Status != http.StatusConflict { // the first may still run
				e.settled(answers[0], answers[2])
			}
		},
	},
	{
		ID: "framing/expect", Sentence: "A request that expects 100-continue is asked for its body, and is the same request as one that does not.",
		Source: "RFC 9110 10.1.1", Levels: Levels{Should, Must, Should, Should},
		run: func(e *env) {
			c := e.post()
			conn := e.dial()
			e.must(conn.Begin(c.With("Expect", "100-continue").Head(wire.Field{Name: "Content-Length", Value: strconv.Itoa(len(c.Body))})))
			if s, err := conn.Continue(); err == nil && s == http.StatusExpectationFailed {
				e.skip("the service meets no expectations")
			} else if err != nil || s != http.StatusContinue {
				e.fail("the answer to Expect is %d %v", s, err)
			}
			e.must(conn.Write(c.Body))
			first, err := conn.Read(c.Method)
			e.must(err)
			if !first.OK() {
				e.fail("answered %v", first)
			}
			e.replays(c, first)
		},
	},
}

// lines returns field lines of one name.
func lines(name string, values ...string) []wire.Field {
	var list []wire.Field
	for _, v := range values {
		list = append(list, wire.Field{Name: name, Value: v})
	}
	return list
}

// hidden returns a whole request with a new key.
func (e *env) hidden() string { return e.post().Bytes() }

// raw sends bytes and returns the answers that came: none, one, or two. It ends its side
// of the connection only when no answer comes, since some servers drop the requests of a
// connection whose other side has ended.
func (e *env) raw(bytes string) (first, second *wire.Answer) {
	conn := e.dial()
	e.must(conn.Begin(bytes))
	var answers [2]*wire.Answer
	for i := range answers {
		if err := conn.Await(e.options.Slow); err != nil && !wire.Closed(err) {
			conn.CloseWrite()
		}
		a, err := conn.Read(http.MethodPost)
		if err != nil {
			e.endOf(err)
			break
		}
		answers[i] = a
	}
	return answers[0], answers[1]
}

// pipelined ends the case as not shown unless the service answers two requests that are
// sent at once: otherwise no hidden request can show.
func (e *env) pipelined() {
	if e.shared.pipelines {
		return
	}
	if _, two := e.raw(e.post().Bytes() + e.hidden()); two == nil {
		e.skip("the service answers one request of a connection, so a hidden one cannot show")
	}
	e.shared.pipelines = true
}

// endOf demands that a connection ended, instead of staying silent.
func (e *env) endOf(err error) {
	if !wire.Closed(err) && !strings.Contains(err.Error(), "malformed") {
		e.must(err)
	}
}

// refusesFraming demands that a request is refused with each framing, with an answer or
// by closing the connection, and that the bytes behind it are not answered.
func (e *env) refusesFraming(behind string, framings ...[]wire.Field) {
	for _, framing := range framings {
		first, second := e.raw(e.post().Head(framing...) + behind)
		if first != nil && first.Status < http.StatusBadRequest {
			e.fail("framed by %q: answered %v", framing, first)
		}
		if second != nil {
			e.fail("framed by %q: what stands behind it is answered %v", framing, second)
		}
	}
	e.pipelined()
}
