package judge

import (
	"github.com/reprise-go/reprise/cmd/reprise/internal/judge/wire"
)

var retryCases = []Case{
	{
		ID: "retries/lost", Sentence: "A client that loses two answers and retries gets the answer of the one run.",
		Source: "draft 1; R12; Stripe, Idempotent requests; ACP 6.3", Levels: Levels{Must, Must, Must, Must},
		run: func(e *env) { e.retries(e.post(), loseAnswer, loseAnswer) },
	},
	{
		ID: "retries/cut", Sentence: "A client whose connection breaks within an answer and that retries gets the answer of the one run.",
		Source: "draft 1; R12; Stripe, Idempotent requests; ACP 6.3", Levels: Levels{Must, Must, Must, Must},
		run: func(e *env) { e.retries(e.post(), cutAnswer, cutAnswer) },
	},
	{
		ID: "retries/request", Sentence: "A client whose connection breaks within its request and that retries gets the answer of one run, of the whole request.",
		Source: "draft 1; R27", Levels: Levels{Must, Must, Must, Must},
		run: func(e *env) { e.retries(e.post(), cutRequest, loseRequest, cutRequest) },
	},
	{
		ID: "retries/late", Sentence: "A client that gives up on a slow answer and retries, at first while the run goes on, gets the answer of the one run.",
		Source: "draft 1, 2.6; R20, R23; ACP 6.3", Levels: Levels{Must, Must, Must, Must}, needs: delay,
		run: func(e *env) { e.retries(e.slow(e.post(), e.options.Slow), holdAnswer) },
	},
}

// retries sends a call as a client does that retries, through a proxy with faults, and
// demands one run.
func (e *env) retries(c wire.Call, faults ...fault) {
	before := 0
	if e.facts.have&counter != 0 {
		before = e.count()
	}
	p := e.proxy(faults)
	defer p.stop()
	last := p.retry(c)
	for _, a := range p.stop() {
		if a.OK() {
			e.settled(a, last)
		}
	}
	if !last.OK() {
		e.fail("the last retry is answered %v", last)
	}
	e.replays(c, last)
	if e.facts.have&counter != 0 {
		if n := e.count() - before; n != 1 {
			e.fail("the counter of runs went up by %d, want 1", n)
		}
	}
}
