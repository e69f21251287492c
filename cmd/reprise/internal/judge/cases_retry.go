package judge

import (
	"net/http"
	"time"

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
		run: func(e *env) { e.retries(told(e.post(), program{BodySize: 256 << 10}), loseAnswer, breakAnswer) },
	},
	{
		ID: "retries/request", Sentence: "A client whose connection breaks within its request and that retries gets the answer of one run, of the whole request.",
		Source: "draft 1; R27", Levels: Levels{Must, Must, Should, Should},
		run: func(e *env) { e.retries(e.post(), cutRequest, cutRequest) },
	},
}

// fault is how one exchange of a call fails for its client.
type fault int

// The faults. Behind loseAnswer the service sees a perfect exchange, and its answer can
// be compared; behind the others it sees its client go.
const (
	loseAnswer  fault = iota
	dropAnswer        // the connection breaks before the answer
	breakAnswer       // … within the answer
	cutRequest        // … within the request
)

// fails makes one exchange of a call that fails, and returns the answer that its client
// lost.
func (e *env) fails(f fault, c wire.Call) *wire.Answer {
	if f == loseAnswer {
		return e.answerTo(c)
	}
	bytes := c.Bytes()
	if f == cutRequest {
		bytes = bytes[:len(bytes)-len(c.Body)/2]
	}
	conn := e.dial()
	e.must(conn.Begin(bytes))
	if f == breakAnswer {
		_ = conn.Await(e.options.Slow / 2)
	}
	conn.Reset()
	return nil
}

// retries sends a call as a client does that retries, after faults, and demands one run.
func (e *env) retries(c wire.Call, faults ...fault) {
	c = c.Set("User-Agent", "reprise-judge")
	e.counts(1, func() {
		var lost []*wire.Answer
		for _, f := range faults {
			if a := e.fails(f, c); a != nil && a.OK() {
				lost = append(lost, a)
			}
			e.pause(e.options.Slow / 8)
		}
		last := e.final(c)
		for _, a := range lost {
			e.settled(a, last)
		}
		if !last.OK() {
			e.fail("the last retry is answered %v", last)
		}
		e.replays(c, last)
	})
}

// final repeats a call until its answer is neither a 409, which may say that the first
// one still runs, nor a 503, and returns the last one.
func (e *env) final(c wire.Call) (last *wire.Answer) {
	if !e.waitFor(10*e.options.Slow+5*time.Second, func() bool {
		last = e.answerTo(c)
		return last != nil && last.Status != http.StatusConflict && last.Status != http.StatusServiceUnavailable
	}) && last == nil {
		e.fail("the client got no answer")
	}
	return last
}
