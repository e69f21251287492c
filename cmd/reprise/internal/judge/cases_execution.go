package judge

import (
	"context"
	"net/http"
	"time"

	"github.com/reprise-go/reprise/cmd/reprise/internal/judge/wire"
)

var executionCases = []Case{
	{
		ID: "executions/retries", Sentence: "A request and its retries are one run, by the counter of runs.",
		Source: "draft 2.6; R12; Stripe, Idempotent requests; ACP 6.3", Levels: Levels{Must, Must, Must, Must}, needs: counter,
		run: func(e *env) {
			c := e.post()
			e.counts(1, func() {
				for range 5 {
					e.first(c)
				}
			})
		},
	},
	{
		ID: "executions/burst", Sentence: "Duplicates that arrive at once are one run, by the counter of runs.",
		Source: "draft 2.6; R20; Stripe, Idempotent requests; ACP 6.3", Levels: Levels{Must, Must, Must, Must}, needs: counter,
		run: func(e *env) {
			e.counts(1, func() { e.burst(e.options.Parallel, e.slow(e.post(), e.options.Slow/4), e.options.URL) })
		},
	},
	{
		ID: "executions/refused", Sentence: "A key with another body, and an absent or long key that is refused, run nothing, by the counter of runs.",
		Source: "draft 2.7; R5, R10, R22; Stripe, Idempotent requests; ACP 6.4", Levels: Levels{Must, Must, Must, Must}, needs: counter,
		run: func(e *env) {
			c := e.post()
			e.first(c)
			for _, refused := range []wire.Call{c.WithBody(e.options.Another), e.unkeyed(), e.keyed(e.unkeyed(), e.form(longKey()))} {
				before := e.count()
				if a := e.ask(refused); !a.OK() && e.count() != before {
					e.fail("%s is refused, and ran: %v", describe(refused, e.options.Header), a)
				}
			}
		},
	},
}

var retentionCases = []Case{
	{
		ID: "retention/kept", Sentence: "A retry gets the replay until the retention ends.",
		Source: "draft 2.3; R37; Stripe, Idempotent requests; ACP 6.6", Levels: Levels{Should, Must, Must, Must}, needs: retention,
		run: func(e *env) {
			c := e.post()
			began := time.Now()
			first := e.first(c)
			e.pause(e.options.Retention * 2 / 3)
			again := e.ask(c)
			if time.Since(began) >= e.options.Retention {
				e.skip("two requests took longer than a third of the retention")
			}
			e.settled(first, again)
		},
	},
	{
		ID: "retention/ends", Sentence: "After the retention a key is new, even for another body.",
		Source: "draft 2.3; R37; ACP 6.6", Levels: Levels{May, Must, May, Must}, needs: retention,
		run: func(e *env) {
			c := e.post()
			first := e.first(c)
			e.pause(e.options.Retention + e.options.Retention/10 + time.Second)
			other := c.WithBody(e.options.Another)
			e.replays(other, e.separate(other, first, "the retention of the key has ended"))
		},
	},
}

var crashCases = []Case{
	{
		ID: "crashes/kept", Sentence: "An answer that a client got before the service was killed is replayed after it started again.",
		Source: "draft 2.6; R12, R37; ACP 6.6", Levels: Levels{Should, Must, Must, Must}, needs: restart,
		run: func(e *env) {
			c := e.post()
			first := e.first(c)
			e.restart()
			if again := e.replays(c, first); again.Body != first.Body {
				e.fail("the body was %q and is %q", first.Body, again.Body)
			}
		},
	},
	{
		ID: "crashes/decided", Sentence: "A request that ran when the service was killed is decided within two minutes: a retry runs, or is told that the outcome is unknown.",
		Source: "draft 2.6; R38", Levels: Levels{Should, Must, Should, Should}, needs: restart | delay,
		run: func(e *env) {
			c := e.post()
			conn := e.dial()
			e.must(conn.Begin(e.slow(c, 20*e.options.Slow).Bytes()))
			e.pause(e.options.Slow / 2)
			e.restart()
			var last *wire.Answer
			decided := func() bool {
				last = e.ask(c)
				return last.OK() || last.Status != http.StatusConflict || last.Header.Get("Retry-After") == ""
			}
			if !e.waitFor(2*time.Minute, decided) {
				e.fail("two minutes later the retry is answered %v", last)
			}
			if last.OK() {
				e.replays(c, last)
			}
		},
	},
}

// restart kills the service, starts it, and waits until it answers.
func (e *env) restart() {
	if err := e.options.Restart(e.ctx); err != nil {
		if e.ctx.Err() != nil {
			e.skip("%v", context.Cause(e.ctx))
		}
		e.skip("the command of --restart failed: %v", err)
	}
	var err error
	up := func() bool {
		_, err = e.try(e.options.URL, e.post())
		return err == nil
	}
	if !e.waitFor(30*time.Second, up) {
		e.must(err)
	}
}
