package judge

import (
	"net/url"
	"sync"
	"time"

	"github.com/reprise-go/reprise/cmd/reprise/internal/judge/wire"
)

// overlap sends two slow requests so that the second is sent while the first runs, and
// returns both answers. The service may have seen them in the other order. A first run
// that ended too early is inconclusive, so overlap tries again with longer runs.
func (e *env) overlap(calls func() (one, two wire.Call)) (*wire.Answer, *wire.Answer) {
	slow := e.options.Slow
	for range 3 {
		c1, c2 := calls()
		var first result
		done := make(chan struct{})
		go func() {
			first = e.resultOf(e.options.URL, e.slow(c1, slow))
			close(done)
		}()
		e.pause(slow / 4)
		sent := time.Now()
		second := e.resultOf(e.options.URL, e.slow(c2, slow))
		<-done
		e.must(first.err)
		e.must(second.err)
		if sent.Before(first.answer.At) {
			return first.answer, second.answer
		}
		slow *= 2
	}
	e.skip("no request could be sent while another one ran")
	return nil, nil
}

// result is an answer or the reason why there is none.
type result struct {
	answer *wire.Answer
	err    error
}

func (e *env) resultOf(to *url.URL, c wire.Call) result {
	a, err := e.try(to, c)
	return result{a, err}
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
			e.fail("the operation ran more than once: %v and %v", first, a)
		}
	}
	if first == nil {
		e.fail("no request was answered 2xx; one of them: %v", answers[0])
	}
	return first
}
