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
			calls := []wire.Call{e.post(), e.post(), e.post()}
			if e.facts.have&delay != 0 {
				calls = append(calls, e.slow(e.post(), e.options.Slow/4))
			}
			for _, c := range calls {
				e.counts(1, func() { e.oneRun(e.burst(e.options.Parallel, c, e.options.URL)) })
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
			if other := e.duplicates().other; other.Status != http.StatusConflict {
				e.fail("it is answered %v", other)
			}
		},
	},
	{
		ID: "concurrency/retry-after", Sentence: "That 409 says when to retry, in Retry-After.",
		Source: "RFC 9110 10.2.3; R20; ACP 6.4", Levels: Levels{May, Must, May, Should}, needs: delay,
		run: func(e *env) {
			other := e.duplicates().other
			if other.Status != http.StatusConflict {
				e.skip("there is no 409: the duplicate is answered %v", other)
			}
			after := other.Header.Get("Retry-After")
			_, notDate := http.ParseTime(after)
			if s, err := strconv.Atoi(after); notDate != nil && (err != nil || s < 0 || s > 3600) {
				e.fail("Retry-After is %q", after)
			}
		},
	},
	{
		ID: "concurrency/after", Sentence: "After the first request completed, a duplicate that got 409 gets the replay.",
		Source: "draft 2.6; R20, R30; Stripe, Idempotent requests; ACP 6.4", Levels: Levels{Must, Must, Must, Must}, needs: delay,
		run: func(e *env) {
			d := e.duplicates()
			e.replays(d.call, e.oneRun([]*wire.Answer{d.run, d.other}))
		},
	},
	{
		ID: "concurrency/others", Sentence: "A request with another key does not wait for one that runs.",
		Source: "R21", Levels: Levels{Should, Must, Should, Should}, needs: delay,
		run: func(e *env) {
			slow := e.options.Slow
			for range 5 { // a machine that is busy needs longer runs
				running := e.begin(e.slow(e.post(), slow))
				e.pause(slow / 4)
				other := e.first(e.post())
				first := e.end(running)
				if first.At.Sub(other.At) > slow/4 {
					return
				}
				slow *= 2
			}
			e.fail("five times the other request was answered only when the first one had ended")
		},
	},
	{
		ID: "concurrency/disconnect", Sentence: "A client that leaves does not end the run: its retry gets the answer, and nothing runs again.",
		Source: "draft 1, 2.6; R20, R23; ACP 6.3", Levels: Levels{Should, Must, Should, Should}, needs: delay,
		run: func(e *env) { e.leaves() },
	},
	{
		ID: "concurrency/addresses", Sentence: "Of duplicates that arrive at once at several addresses of the service, one runs.",
		Source: "draft 2.6; R12, R20, G1", Levels: Levels{Must, Must, Should, Should}, needs: addresses,
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
}

// leaves begins slow requests, resets their connections while they run, and demands that
// the runs end as if the client had stayed.
func (e *env) leaves() {
	c := e.slow(e.post(), e.options.Slow)
	e.counts(1, func() {
		conn := e.dial()
		e.must(conn.Begin(c.Bytes()))
		e.pause(e.options.Slow / 2)
		conn.Reset()
		var last *wire.Answer
		if !e.waitFor(e.options.Slow*10+5*time.Second, func() bool { last = e.ask(c); return last.OK() }) {
			e.fail("the retry is still answered %v", last)
		}
		e.replays(c, last)
	})
}
