package judge

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/reprise-go/reprise/cmd/reprise/internal/judge/wire"
)

var retentionCases = []Case{
	{
		ID: "retention/kept", Sentence: "A retry gets the replay until the retention ends.",
		Source: "draft 2.3; R37; Stripe, Idempotent requests; ACP 6.6", Levels: Levels{Should, Must, Must, Must}, needs: retention,
		run: func(e *env) {
			c, first := e.kept(0)
			e.pause(time.Until(first.At.Add(e.options.Retention * 2 / 3)))
			again := e.ask(c)
			if again.At.Sub(first.At) >= e.options.Retention-first.Took {
				e.skip("two requests took longer than a third of the retention")
			}
			e.settled(first, again)
		},
	},
	{
		ID: "retention/ends", Sentence: "After the retention a key is new, even for another body.",
		Source: "draft 2.3; R37; ACP 6.6", Levels: Levels{May, Must, May, Must}, needs: retention,
		run: func(e *env) {
			c, first := e.kept(1)
			e.pause(time.Until(first.At.Add(e.options.Retention + e.options.Retention/10 + time.Second)))
			other := c.WithBody(e.options.Another)
			e.replays(other, e.separate(other, first, "the retention of the key has ended"))
		},
	},
}

// kept returns one of two requests, which are sent together, and its answer.
func (e *env) kept(i int) (wire.Call, *wire.Answer) {
	k := &e.shared.kept
	if k[0].run == nil {
		for i := range k {
			k[i].call = e.post()
			k[i].run = e.first(k[i].call)
		}
	}
	return k[i].call, k[i].run
}

var crashCases = []Case{
	{
		ID: "crashes/kept", Sentence: "An answer that a client got before the service was killed is replayed after it started again.",
		Source: "draft 2.6; R12, R37; ACP 6.6", Levels: Levels{Should, Must, Should, Must}, needs: restart,
		run: func(e *env) {
			c, first := e.answered()
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
			running := e.duplicates().other
			c := e.post()
			conn := e.dial()
			e.must(conn.Begin(e.slow(c, 20*e.options.Slow).Bytes()))
			e.pause(e.options.Slow / 2)
			e.restart()
			var last *wire.Answer
			decided := func() bool {
				last = e.ask(c)
				return last.OK() || last.Status == http.StatusConflict && kind(last) != kind(running)
			}
			if !e.waitFor(120*e.options.Slow, decided) { // a slow run is a second
				e.fail("two minutes later the retry is answered %v", last)
			}
			if last.OK() {
				e.replays(c, last)
			}
		},
	},
}

// kind returns the status of a refusal and the type and code of its JSON, or its body if
// it has none.
func kind(a *wire.Answer) string {
	var body struct{ Type, Code string }
	if json.Unmarshal([]byte(a.Body), &body) == nil && body.Type+body.Code != "" {
		return fmt.Sprint(a.Status, body.Type, body.Code)
	}
	return fmt.Sprint(a.Status, a.Body)
}

// restart kills the service, starts it, and waits until it runs requests.
func (e *env) restart() {
	idle := e.dial()
	if err := e.options.Restart(e.ctx); err != nil {
		if e.ctx.Err() != nil {
			e.ended()
		}
		e.skip("the command of --restart failed: %v", err)
	}
	if !wire.Closed(idle.Await(time.Second)) {
		e.skip("the command of --restart did not end the service: a connection to it stays open")
	}
	var a *wire.Answer
	var err error
	up := func() bool {
		a, err = e.try(e.options.URL, e.post())
		return err == nil && a.OK()
	}
	if !e.waitFor(30*time.Second, up) {
		e.must(err)
		e.fail("after its start the service answers %v", a)
	}
}
