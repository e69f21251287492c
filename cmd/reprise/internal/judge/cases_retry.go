package judge

import (
	"github.com/reprise-go/reprise/cmd/reprise/internal/judge/wire"
)

var retryCases = []Case{
	{
		ID: "retries/lost", Sentence: "A client that loses two answers and retries gets the answer of the one run.",
		Source: "draft 1; R12; Stripe, Idempotent requests; ACP 6.3", Levels: Levels{Must, Must, Must, Must},
		run: func(e *env) { e.retries(e.post(), loseAnswer, dropAnswer) },
	},
	{
		ID: "retries/cut", Sentence: "A client whose connection breaks within an answer and that retries gets the answer of the one run.",
		Source: "draft 1; R12; Stripe, Idempotent requests; ACP 6.3", Levels: Levels{Must, Must, Must, Must},
		run: func(e *env) { e.retries(told(e.post(), program{BodySize: 256 << 10}), cutAnswer, breakAnswer) },
	},
	{
		ID: "retries/request", Sentence: "A client whose connection breaks within its request and that retries gets the answer of one run, of the whole request.",
		Source: "draft 1; R27", Levels: Levels{Must, Must, Should, Should},
		run: func(e *env) { e.retries(e.post(), cutRequest, loseRequest, cutRequest) },
	},
}

// retries sends a call as a client does that retries, through a proxy with faults, and
// demands one run.
func (e *env) retries(c wire.Call, faults ...fault) {
	e.counts(1, func() {
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
	})
}
