package judge

import (
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/reprise-go/reprise/cmd/reprise/internal/judge/wire"
)

var concurrencyCases = []Case{
	{
		ID: "concurrency/once", Sentence: "Of duplicates that arrive at once, one runs.",
		Source: "draft 2.6; R20; Stripe, Idempotent requests; ACP 6.3", Levels: Levels{Must, Must, Must, Must},
		run: func(e *env) {
			for range 3 {
				e.oneRun(e.burst(e.options.Parallel, e.post(), e.options.URL))
			}
			if e.facts.have&delay != 0 {
				e.oneRun(e.burst(e.options.Parallel, e.slow(e.post(), e.options.Slow/4), e.options.URL))
			}
		},
	},
	{
		ID: "concurrency/duplicates", Sentence: "The other duplicates get 409, or wait and get the replay.",
		Source: "draft 2.6; R20; Stripe, Idempotent requests; ACP 6.4", Levels: Levels{Should, Must, Should, Should},
		run: func(e *env) {
			c := e.post()
			if e.facts.have&delay != 0 {
				c = e.slow(c, e.options.Slow/4)
			}
			answers := e.burst(e.options.Parallel, c, e.options.URL)
			first := e.oneRun(answers)
			for _, a := range answers {
				if a.Status != http.StatusConflict && a.Status != first.Status {
					e.fail("a duplicate is answered %v", a)
				}
			}
		},
	},
	{
		ID: "concurrency/409", Sentence: "A duplicate that arrives while the first request runs gets 409.",
		Source: "draft 2.7; Stripe, Advanced error handling; ACP 6.4", Levels: Levels{Should, None, Should, Must}, needs: delay,
		run: func(e *env) {
			if _, other := e.twice(); other.Status != http.StatusConflict {
				e.fail("it is answered %v", other)
			}
		},
	},
	{
		ID: "concurrency/retry-after", Sentence: "That 409 says when to retry, in Retry-After.",
		Source: "RFC 9110 10.2.3; R20; ACP 6.4", Levels: Levels{May, Must, May, Should}, needs: delay,
		run: func(e *env) {
			_, other := e.twice()
			if other.Status != http.StatusConflict {
				e.skip("there is no 409: the duplicate is answered %v", other)
			}
			after := other.Header.Get("Retry-After")
			if s, err := strconv.Atoi(after); err != nil || s < 0 || s > 3600 {
				e.fail("Retry-After is %q", after)
			}
		},
	},
	{
		ID: "concurrency/after", Sentence: "After the first request completed, a duplicate that got 409 gets the replay.",
		Source: "draft 2.6; R20, R30; Stripe, Idempotent requests; ACP 6.4", Levels: Levels{Must, Must, Must, Must}, needs: delay,
		run: func(e *env) {
			var c wire.Call
			one, two := e.overlap(func() (wire.Call, wire.Call) {
				c = e.post()
				return c, c
			})
			first := e.oneRun([]*wire.Answer{one, two})
			e.replays(c, first)
		},
	},
	{
		ID: "concurrency/others", Sentence: "A request with another key does not wait for one that runs.",
		Source: "R21", Levels: Levels{Should, Must, Should, Should}, needs: delay,
		run: func(e *env) {
			slow := e.options.Slow
			for range 3 { // a machine that is busy needs longer runs
				done := make(chan result, 1)
				go func() { done <- e.resultOf(e.options.URL, e.slow(e.post(), slow)) }()
				e.pause(slow / 4)
				other := e.first(e.post())
				r := <-done
				e.must(r.err)
				if r.answer.At.Sub(other.At) > slow/4 {
					return
				}
				slow *= 2
			}
			e.fail("three times the other request was answered only when the first one had ended")
		},
	},
	{
		ID: "concurrency/disconnect", Sentence: "A client that leaves does not end the run: its retry gets the answer, and nothing runs again.",
		Source: "R23; ACP 6.3", Levels: Levels{Should, Must, Must, Must}, needs: delay | counter,
		run: func(e *env) { e.leaves() },
	},
	{
		ID: "concurrency/addresses", Sentence: "Of duplicates that arrive at once at several addresses of the service, one runs.",
		Source: "R20, G1", Levels: Levels{Must, Must, Must, Must}, needs: addresses,
		run: func(e *env) {
			all := append([]*url.URL{e.options.URL}, e.options.Also...)
			for range 3 {
				c := e.post()
				first := e.oneRun(e.burst(e.options.Parallel, c, all...))
				for _, to := range all {
					e.settled(first, e.askAt(to, c.At(to)))
				}
			}
		},
	},
	{
		ID: "concurrency/elsewhere", Sentence: "An answer that one address of the service gave is replayed by the others.",
		Source: "R12, G1", Levels: Levels{Must, Must, Must, Must}, needs: addresses,
		run: func(e *env) {
			c := e.post()
			first := e.first(c)
			for _, to := range e.options.Also {
				e.settled(first, e.askAt(to, c.At(to)))
			}
		},
	},
}

// twice sends a request twice, the second time while the first runs, and returns the
// answer of the run and the other one.
func (e *env) twice() (run, other *wire.Answer) {
	one, two := e.overlap(func() (wire.Call, wire.Call) {
		c := e.post()
		return c, c
	})
	if !one.OK() {
		return two, one
	}
	return one, two
}

// leaves begins a slow request, resets its connection while it runs, and demands that the
// run ends as if the client had stayed.
func (e *env) leaves() {
	before := e.count()
	c := e.slow(e.post(), e.options.Slow)
	conn := e.dial()
	e.must(conn.Begin(c.Bytes()))
	e.pause(e.options.Slow / 2)
	conn.Reset()
	var last *wire.Answer
	if !e.waitFor(e.options.Slow*10+5*time.Second, func() bool { last = e.ask(c); return last.OK() }) {
		e.fail("the retry is still answered %v", last)
	}
	e.replays(c, last)
	if n := e.count() - before; n != 1 {
		e.fail("%d runs", n)
	}
}
