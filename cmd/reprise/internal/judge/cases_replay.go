package judge

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/reprise-go/reprise/cmd/reprise/internal/judge/wire"
)

// gzipped is an empty gzip stream.
const gzipped = "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff\x03\x00\x00\x00\x00\x00\x00\x00\x00\x00"

var replayCases = []Case{
	{
		ID: "replay/once", Sentence: "Retries are answered by the first run.",
		Source: "draft 2.6; R12; Stripe, Idempotent requests; ACP 6.3", Levels: Levels{Must, Must, Must, Must},
		run: func(e *env) {
			c := e.post()
			e.counts(1, func() {
				first := e.first(c)
				for range 3 {
					e.replays(c, first)
				}
			})
		},
	},
	{
		ID: "replay/status", Sentence: "A replay has the status of the first answer.",
		Source: "draft 2.6; R12; Stripe, Idempotent requests; ACP 6.3", Levels: Levels{Must, Must, Must, Must}, needs: status,
		run: func(e *env) {
			for _, s := range []int{http.StatusOK, http.StatusAccepted, http.StatusSeeOther} {
				c := told(e.post(), program{Status: s, Headers: [][2]string{{"Location", "/elsewhere"}}})
				first := e.ask(c)
				if first.Status != s {
					e.skip("the endpoint was told to answer %d and answers %v", s, first)
				}
				e.replays(c, first)
			}
		},
	},
	{
		ID: "replay/body", Sentence: "A replay has the body of the first answer, byte for byte.",
		Source: "draft 2.6; R12; Stripe, Idempotent requests; ACP 6.3", Levels: Levels{Must, Must, Must, Must},
		run: func(e *env) {
			calls := []wire.Call{e.post()}
			if e.facts.have&bytes != 0 {
				all := make([]byte, 0, 512)
				for i := range 512 {
					all = append(all, byte(i))
				}
				for _, body := range [][]byte{all, {0}, []byte("\xff\xfe\r\n\r\n")} {
					calls = append(calls, told(e.post(), program{Body: body, Headers: [][2]string{{"Content-Type", "application/octet-stream"}}}))
				}
			}
			for _, c := range calls {
				first := e.first(c)
				if again := e.replays(c, first); again.Body != first.Body {
					e.fail("the body was %q and is %q", first.Body, again.Body)
				}
			}
		},
	},
	{
		ID: "replay/empty", Sentence: "An answer 204 is replayed as 204, without a body and without an invented Content-Type.",
		Source: "RFC 9110 15.3.5; R16", Levels: Levels{Should, Must, Should, Should}, needs: status,
		run: func(e *env) {
			c := told(e.post(), program{Status: http.StatusNoContent})
			first := e.ask(c)
			if first.Status != http.StatusNoContent {
				e.skip("the endpoint cannot answer 204: %v", first)
			}
			again := e.replays(c, first)
			if again.Body != "" || again.Header.Get("Content-Type") != first.Header.Get("Content-Type") {
				e.fail("replayed with Content-Type %q and the body %q", again.Header.Get("Content-Type"), again.Body)
			}
		},
	},
	{
		ID: "replay/type", Sentence: "A replay has the Content-Type of the first answer.",
		Source: "draft 2.6; R13", Levels: Levels{Must, Must, Should, Should},
		run: func(e *env) { e.keepsFields("Content-Type") },
	},
	{
		ID: "replay/fields", Sentence: "A replay has the other fields that the operation set: their values, their number and their order.",
		Source: "draft 2.6; R13", Levels: Levels{Should, Must, Should, Should}, needs: fields,
		run: func(e *env) {
			e.keepsFields("Location", "X-Several", "Content-Language")
		},
	},
	{
		ID: "replay/coding", Sentence: "The content coding stays with the body.",
		Source: "RFC 9110 8.4; R19", Levels: Levels{Should, Must, Should, Should}, needs: fields | bytes,
		run: func(e *env) {
			c := told(e.post(), program{Body: []byte(gzipped), Headers: [][2]string{{"Content-Encoding", "gzip"}}})
			first := e.first(c)
			again := e.replays(c, first)
			if again.Header.Get("Content-Encoding") != "gzip" || again.Body != first.Body {
				e.fail("replayed with Content-Encoding %q and %d bytes, first %d bytes", again.Header.Get("Content-Encoding"), len(again.Body), len(first.Body))
			}
		},
	},
	{
		ID: "replay/cookies", Sentence: "Set-Cookie is not replayed: a session belongs to one exchange.",
		Source: "R14", Levels: Levels{None, Must, None, None}, needs: fields,
		run: func(e *env) {
			c := told(e.post(), program{Headers: [][2]string{{"Set-Cookie", "session=judge"}}})
			first := e.first(c)
			if first.Header.Get("Set-Cookie") == "" {
				e.skip("the first answer has no cookie either")
			}
			if again := e.replays(c, first); again.Header.Get("Set-Cookie") != "" {
				e.fail("replayed %q", again.Header.Get("Set-Cookie"))
			}
		},
	},
	{
		ID: "replay/date", Sentence: "A replay has a Date of its own.",
		Source: "RFC 9110 6.6.1; R15", Levels: Levels{Should, Must, Should, Should},
		run: func(e *env) {
			c, first := e.facts.call, e.facts.first
			then, err := http.ParseTime(first.Header.Get("Date"))
			if err != nil {
				e.skip("the first answer has no Date")
			}
			e.pause(time.Until(first.At.Add(2100 * time.Millisecond)))
			again := e.replays(c, first)
			if now, err := http.ParseTime(again.Header.Get("Date")); err != nil || now.Sub(then) < time.Second || len(again.Values("Date")) != 1 {
				e.fail("two seconds later the Date is %q; it was %q", again.Values("Date"), first.Header.Get("Date"))
			}
		},
	},
	{
		ID: "replay/marker", Sentence: "A replay carries Idempotent-Replayed: true.",
		Source: "R15; Stripe, Advanced error handling; ACP 6.3", Levels: Levels{None, Must, Should, Should},
		run: func(e *env) {
			c := e.post()
			if again := e.replays(c, e.first(c)); !strings.EqualFold(again.Header.Get(replayed), "true") {
				e.fail("%s is %q", replayed, again.Header.Get(replayed))
			}
		},
	},
	{
		ID: "replay/framing", Sentence: "The connection can be used after a replay: its length is right.",
		Source: "RFC 9112 6; R14", Levels: Levels{Should, Must, Should, Should},
		run: func(e *env) {
			conn, c := e.dial(), e.post()
			first, err := conn.Ask(c)
			e.must(err)
			for range 3 {
				e.must(conn.Begin(c.Bytes()))
				if err := conn.Await(e.options.Client.Limits.Timeout); wire.Closed(err) {
					e.skip("the service closes the connection between two requests")
				}
				again, err := conn.Read(c.Method)
				e.must(err)
				e.settled(first, again)
			}
		},
	},
	{
		ID: "replay/conditions", Sentence: "A range or a condition on a retry does not alter the replay.",
		Source: "RFC 9110 13, 14; R18", Levels: Levels{Should, Must, Should, Should},
		run: func(e *env) {
			c, first := e.answered()
			for _, f := range []string{"Range: bytes=0-0", "If-None-Match: *", "If-Modified-Since: Thu, 01 Jan 2099 00:00:00 GMT", "If-Match: \"none\""} {
				name, value, _ := strings.Cut(f, ": ")
				if again := e.replays(c.With(name, value), first); again.Body != first.Body {
					e.fail("with %s the body is %q", f, again.Body)
				}
			}
		},
	},
}

// keepsFields demands that fields are replayed. A cooperating endpoint sets them.
func (e *env) keepsFields(names ...string) {
	c := e.post()
	if e.facts.have&fields != 0 {
		c = told(c, program{Headers: [][2]string{
			{"Content-Type", "application/vnd.judge+json"},
			{"Location", "/orders/1"},
			{"X-Several", "one"},
			{"X-Several", "two"},
			{"X-Several", "one"},
			{"Content-Language", "de"},
		}})
	}
	first := e.first(c)
	again := e.replays(c, first)
	for _, name := range names {
		if !slices.Equal(first.Values(name), again.Values(name)) {
			e.fail("%s was %q and is %q", name, first.Values(name), again.Values(name))
		}
	}
}
