package judge

import (
	"net/http"

	"github.com/reprise-go/reprise/cmd/reprise/internal/judge/wire"
)

var failureCases = []Case{
	{
		ID: "failures/kept", Sentence: "A 500 is an answer like any other: a retry gets it again, and nothing runs.",
		Source: "Stripe, Idempotent requests", Levels: Levels{None, None, Must, None}, needs: status,
		run: func(e *env) {
			c := e.post()
			first := e.answers(c, http.StatusInternalServerError)
			e.settled(first, e.ask(c)) // without the program a second run would succeed
		},
	},
	{
		ID: "failures/again", Sentence: "A 5xx is not kept: a retry runs.",
		Source: "ACP 6.5", Levels: Levels{None, None, None, Must}, needs: status,
		run: func(e *env) {
			for _, s := range []int{http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable} {
				c := e.post()
				e.answers(c, s)
				e.replays(c, e.first(c))
			}
		},
	},
	{
		ID: "failures/decided", Sentence: "After a 500 a retry runs or gets the 500 again; it is not told that the first request still runs.",
		Source: "draft 2.6; R31", Levels: Levels{Should, Must, None, None}, needs: status,
		run: func(e *env) {
			c := e.post()
			first := e.answers(c, http.StatusInternalServerError)
			if a := e.ask(c); !a.OK() && a.Status != first.Status {
				e.fail("the retry is answered %v", a)
			}
		},
	},
	{
		ID: "failures/4xx", Sentence: "A refusal by the operation itself (402, 404) is replayed.",
		Source: "draft 2.6; R31; Stripe, Idempotent requests; ACP 6.3", Levels: Levels{Should, Must, Must, Must}, needs: status,
		run: func(e *env) {
			for _, s := range []int{http.StatusPaymentRequired, http.StatusNotFound} {
				c := e.post()
				e.settled(e.answers(c, s), e.ask(c))
			}
		},
	},
	{
		ID: "failures/unprocessed", Sentence: "An answer that says that nothing was processed (401, 425, 429) is not kept: a retry runs.",
		Source: "R31", Levels: Levels{None, Must, None, None}, needs: status,
		run: func(e *env) {
			for _, s := range []int{http.StatusUnauthorized, http.StatusTooEarly, http.StatusTooManyRequests} {
				c := e.post()
				e.answers(c, s)
				e.first(c)
			}
		},
	},
	{
		ID: "failures/cut", Sentence: "An answer that was cut short is never replayed as a complete one.",
		Source: "R33", Levels: Levels{Should, Must, Should, Should}, needs: abort,
		run: func(e *env) {
			const size = 10_000
			c := e.post()
			_, err := e.try(e.options.URL, told(c, program{Status: http.StatusCreated, BodySize: size, Behaviour: abortBehaviour}))
			if err == nil {
				e.skip("the answer was not cut this time")
			}
			whole := told(c, program{Status: http.StatusCreated, BodySize: size})
			for range 2 {
				if a, err := e.try(e.options.URL, whole); err == nil && a.OK() && len(a.Body) < size && a.Header.Get(omitted) == "" {
					e.fail("the retry is answered %d with %d of %d bytes", a.Status, len(a.Body), size)
				}
			}
		},
	},
}

// omitted marks a replay whose body was not kept.
const omitted = "Idempotency-Body"

// answers sends a request that the endpoint is told to answer with a status.
func (e *env) answers(c wire.Call, s int) *wire.Answer {
	a := e.ask(told(c, program{Status: s}))
	if a.Status != s {
		e.skip("the endpoint was told to answer %d and answers %v", s, a)
	}
	return a
}
