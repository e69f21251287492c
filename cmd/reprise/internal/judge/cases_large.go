package judge

import (
	"net/http"
	"strings"
)

var largeCases = []Case{
	{
		ID: "large/answer", Sentence: "An answer of 256 KiB is replayed whole.",
		Source: "draft 2.6; R12, R35", Levels: Levels{Must, Must, Should, Should}, needs: bytes,
		run: func(e *env) { e.large(256<<10, false) },
	},
	{
		ID: "large/huge", Sentence: "A retry of a request with an answer of 4 MiB does not run; it gets the whole body, or is told that the body was not kept.",
		Source: "draft 2.6; R35", Levels: Levels{Must, Must, Should, Should}, needs: bytes,
		run: func(e *env) { e.large(4<<20, true) },
	},
	{
		ID: "large/request", Sentence: "A body of 256 KiB is bound whole: another last byte makes another request.",
		Source: "draft 2.4; R24, R26; Stripe, Idempotent requests; ACP 6.2", Levels: Levels{Should, Must, Must, Must},
		run: func(e *env) { e.boundWhole(256<<10, false) },
	},
	{
		ID: "large/limit", Sentence: "A body of 3 MiB is bound whole too, or refused with 413.",
		Source: "draft 2.4; R26; Stripe, Idempotent requests; ACP 6.2", Levels: Levels{Should, Must, Must, Must},
		run: func(e *env) { e.boundWhole(3<<20, true) },
	},
}

// large demands that an answer of a size is replayed or, if it may be omitted, that the
// retry says so.
func (e *env) large(size int, mayOmit bool) {
	c := told(e.post(), program{BodySize: size})
	first := e.first(c)
	if len(first.Body) != size {
		e.skip("the endpoint was told to answer %d bytes and answers %d", size, len(first.Body))
	}
	for range 2 {
		again := e.ask(c)
		if e.ran(first, again) && (e.mark(again) != "" || len(again.Body) == size) {
			e.harm("the operation ran again")
		}
		told := again.Header.Get(omitted) != "" || again.Status == http.StatusConflict || again.Status == http.StatusGone
		if again.Body != first.Body && !(mayOmit && told) {
			e.fail("the retry is answered %d with %d of %d bytes", again.Status, len(again.Body), size)
		}
	}
}

// boundWhole demands that two bodies that differ in their last byte are told apart or, if
// they may be refused, that they are refused.
func (e *env) boundWhole(size int, mayRefuse bool) {
	body := func(last string) string {
		return `{"judge":"` + strings.Repeat("x", size-len(`{"judge":""}`)-1) + last + `"}`
	}
	c := e.post().WithBody(body("1"))
	first := e.ask(c)
	if mayRefuse && first.Status == http.StatusRequestEntityTooLarge {
		return
	}
	if !first.OK() {
		e.skip("the endpoint does not take such bodies: answered %v", first)
	}
	e.unlike(c.WithBody(body("2")), first)
	e.replays(c, first)
}
