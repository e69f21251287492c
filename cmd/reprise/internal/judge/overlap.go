package judge

import (
	"net/url"
	"sync"
	"time"

	"github.com/reprise-go/reprise/cmd/reprise/internal/judge/wire"
)

// result is an answer or the reason why there is none.
type result struct {
	answer *wire.Answer
	err    error
}

// begin sends a request, and reads its answer in the background.
func (e *env) begin(c wire.Call) <-chan result {
	conn := e.dial()
	e.must(conn.Begin(c.Bytes()))
	done := make(chan result, 1)
	e.busy.Go(func() {
		a, err := conn.Read(c.Method)
		done <- result{a, err}
	})
	return done
}

// end returns the answer to a request that begin sent.
func (e *env) end(running <-chan result) *wire.Answer {
	r := <-running
	e.must(r.err)
	return r.answer
}

// overlap sends two slow requests so that the second is sent while the first runs, and
// returns both answers. The service may have seen them in the other order. A first run
// that ended soon after the second was sent is inconclusive, so overlap tries again with
// longer runs.
func (e *env) overlap(calls func() (one, two wire.Call)) (*wire.Answer, *wire.Answer) {
	slow := e.options.Slow
	for range 4 {
		c1, c2 := calls()
		first := e.begin(e.slow(c1, slow))
		e.pause(slow / 4)
		second := e.begin(e.slow(c2, slow))
		sent := time.Now()
		one, two := e.end(first), e.end(second)
		if one.At.Sub(sent) >= slow/4 {
			return one, two
		}
		slow *= 2
	}
	e.skip("no request could be sent while another one ran")
	return nil, nil
}

// duplicates sends a slow request twice, the second time while the first runs, and
// returns the request, the answer of the run and the other one: the same ones to all
// cases of a run.
func (e *env) duplicates() duplicated {
	if e.shared.duplicated.run == nil {
		var c wire.Call
		one, two := e.overlap(func() (wire.Call, wire.Call) {
			c = e.post()
			return c, c
		})
		if !one.OK() {
			one, two = two, one // they changed places on their way
		}
		e.shared.duplicated = duplicated{c, one, two}
	}
	return e.shared.duplicated
}

// duplicated is a request that was sent twice at once.
type duplicated struct {
	call       wire.Call
	run, other *wire.Answer
}

// burst sends n copies of a request at once, in turn to each of the addresses: all but
// the last byte of each waits at the service before the last bytes follow together.
func (e *env) burst(n int, c wire.Call, to ...*url.URL) []*wire.Answer {
	conns, last := make([]*wire.Conn, n), make([]string, n)
	for i := range conns {
		there := to[i%len(to)]
		bytes := c.At(there).Bytes()
		conns[i], last[i] = e.dialTo(there), bytes[len(bytes)-1:]
		e.must(conns[i].Begin(bytes[:len(bytes)-1]))
	}
	results := make([]result, n)
	start := make(chan struct{})
	var all sync.WaitGroup
	for i, conn := range conns {
		all.Go(func() {
			<-start
			if results[i].err = conn.Write(last[i]); results[i].err == nil {
				results[i].answer, results[i].err = conn.Read(c.Method)
			}
			conn.Close() // a service with few threads has one for the next
		})
	}
	close(start)
	all.Wait()
	answers := make([]*wire.Answer, n)
	for i, r := range results {
		e.must(r.err)
		answers[i] = r.answer
	}
	return answers
}

// oneRun demands that the answers show one run, and returns one of its answers.
func (e *env) oneRun(answers []*wire.Answer) *wire.Answer {
	var first *wire.Answer
	for _, a := range answers {
		switch {
		case !a.OK():
		case first == nil:
			first = a
		case e.ran(first, a):
			e.harm("the operation ran more than once: %v and %v", first, a)
		}
	}
	if first == nil {
		e.fail("no request was answered 2xx; one of them: %v", answers[0])
	}
	return first
}
