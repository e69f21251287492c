package judge

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/reprise-go/reprise/cmd/reprise/internal/judge/wire"
)

// env has the tools of one case. Its methods end the case when the service does not meet
// their demand.
type env struct {
	options *Options
	facts   Facts
	ctx     context.Context //nolint:containedctx // of the one case that env serves
	shared  *shared

	conns []*wire.Conn
	busy  sync.WaitGroup // reads of answers
}

// shared has the facts that a run finds out once for all of its cases.
type shared struct {
	refusals   []refusal
	duplicated duplicated
	kept       [2]duplicated // without the other answer
	pipelines  bool          // the service answered two requests that were sent at once
}

func (e *env) close() {
	for _, c := range e.conns {
		c.Close()
	}
	e.busy.Wait()
}

// uuid returns a random UUID, version 4.
func uuid() string {
	var b [16]byte
	_, _ = rand.Read(b[:])
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	h := hex.EncodeToString(b[:])
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

// form writes a key in the form that the endpoint takes.
func (e *env) form(key string) string {
	if e.facts.quoted {
		return `"` + key + `"`
	}
	return key
}

// unkeyed returns a request without a key.
func (e *env) unkeyed() wire.Call {
	o := e.options
	c := wire.Call{Method: http.MethodPost, Target: o.URL.RequestURI(), Host: o.URL.Host, Fields: o.Fields, Body: o.Body}
	if len(o.Scopes) > 0 {
		c = c.With(o.Scopes[0].Name, o.Scopes[0].Value)
	}
	return c
}

// post returns a request with a new key.
func (e *env) post() wire.Call { return e.keyed(e.unkeyed(), e.form(uuid())) }

// keyed returns the request with these key lines and no others.
func (e *env) keyed(c wire.Call, lines ...string) wire.Call {
	c = c.Without(e.options.Header)
	for _, l := range lines {
		c = c.With(e.options.Header, l)
	}
	return c
}

// slow returns the request with a program that takes a while.
func (e *env) slow(c wire.Call, d time.Duration) wire.Call {
	return told(c, program{DelayMS: int(d.Milliseconds())})
}

// dial opens a connection that lives as long as the case.
func (e *env) dial() *wire.Conn { return e.dialTo(e.options.URL) }

func (e *env) dialTo(to *url.URL) *wire.Conn {
	c, err := e.options.Client.Dial(e.ctx, to)
	e.must(err)
	e.conns = append(e.conns, c)
	return c
}

// try sends a request on a new connection; it is safe for concurrent use.
func (e *env) try(to *url.URL, c wire.Call) (*wire.Answer, error) {
	conn, err := e.options.Client.Dial(e.ctx, to)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	return conn.Ask(c)
}

// ask sends a request on a new connection and returns the answer, which must come.
func (e *env) ask(c wire.Call) *wire.Answer { return e.askAt(e.options.URL, c) }

func (e *env) askAt(to *url.URL, c wire.Call) *wire.Answer {
	a, err := e.try(to, c)
	e.must(err)
	if a.Status == http.StatusTooManyRequests && e.mark(a) == "" {
		e.stop(NotShown, "the service limits the rate of requests")
	}
	return a
}

// answerTo sends a request on a new connection and returns the answer, nil if the service
// ended the connection instead.
func (e *env) answerTo(c wire.Call) *wire.Answer {
	a, err := e.try(e.options.URL, c)
	if wire.Closed(err) {
		return nil
	}
	e.must(err)
	return a
}

// chunked sends a request in chunks, which a service may refuse.
func (e *env) chunked(c wire.Call, trailers ...wire.Field) *wire.Answer {
	a := e.ask(c.InChunks(trailers...))
	if a.Status == http.StatusLengthRequired {
		e.skip("the service takes no request without a length")
	}
	return a
}

// first sends a request that has to run.
func (e *env) first(c wire.Call) *wire.Answer {
	a := e.ask(c)
	if !a.OK() {
		e.fail("a request with a new key (%s) is answered %v", describe(c, e.options.Header), a)
	}
	return a
}

// answered sends a request with a new key, which has to run, and returns both.
func (e *env) answered() (c wire.Call, first *wire.Answer) {
	c = e.post()
	return c, e.first(c)
}

// describe names the key of a request.
func describe(c wire.Call, header string) string {
	var lines []string
	for _, f := range c.Fields {
		if strings.EqualFold(f.Name, header) {
			value := f.Value
			const most = 60
			if len(value) > most {
				value = fmt.Sprintf("%s… %d bytes", value[:most], len(value))
			}
			lines = append(lines, fmt.Sprintf("%q", value))
		}
	}
	if len(lines) == 0 {
		return "no key"
	}
	return "key " + strings.Join(lines, " and ")
}

// mark returns the mark of the run that an answer shows, and "" if it shows none.
func (e *env) mark(a *wire.Answer) string {
	if e.facts.mark == "" {
		return ""
	}
	return a.Header.Get(e.facts.mark)
}

// ran reports whether again shows another run than first does.
func (e *env) ran(first, again *wire.Answer) bool {
	if e.facts.mark != "" {
		m := e.mark(again)
		return m != "" && m != e.mark(first)
	}
	return again.OK() && again.Body != first.Body
}

// settled demands that again is the answer of the same run, with its status. Other cases
// compare the rest.
func (e *env) settled(first, again *wire.Answer) {
	if e.ran(first, again) {
		ended := e.harm
		if first.Status >= http.StatusBadRequest {
			ended = e.fail // a run that failed may be made good
		}
		ended("the operation ran again: first %v, then %v", first, again)
	}
	if again.Status != first.Status {
		e.fail("the retry is answered %v, and the first request was answered %v", again, first)
	}
}

// replays sends a retry and demands the answer of the first run.
func (e *env) replays(c wire.Call, first *wire.Answer) *wire.Answer {
	again := e.ask(c)
	e.settled(first, again)
	return again
}

// separate demands that the request runs although first is the answer to a similar one.
func (e *env) separate(c wire.Call, first *wire.Answer, why string) *wire.Answer {
	a := e.ask(c)
	switch {
	case !a.OK():
		e.fail("%s: answered %v", why, a)
	case !e.ran(first, a):
		e.harm("%s: it got the answer of the other one", why)
	}
	return a
}

// refuses demands a status, and that the request does not run.
func (e *env) refuses(c wire.Call, status int) *wire.Answer {
	var a *wire.Answer
	e.counts(0, func() {
		if a = e.ask(c); e.mark(a) != "" || a.OK() {
			e.fail("%s is not refused: answered %v", describe(c, e.options.Header), a)
		}
	})
	if a.Status != status {
		e.fail("%s is answered %v, want %d", describe(c, e.options.Header), a, status)
	}
	return a
}

// rejects demands that a request does not run: the middleware may refuse it, or the
// server below by any 4xx or by closing the connection.
func (e *env) rejects(c wire.Call) {
	e.counts(0, func() {
		if a := e.answerTo(c); a != nil && (a.Status/100 != 4 || e.mark(a) != "") {
			e.fail("%s is answered %v, want a 4xx", describe(c, e.options.Header), a)
		}
	})
}

// pause waits; the case ends if the run does.
func (e *env) pause(d time.Duration) {
	select {
	case <-time.After(d):
	case <-e.ctx.Done():
		e.ended()
	}
}

// waitFor polls until done or a time-out.
func (e *env) waitFor(most time.Duration, done func() bool) bool {
	const step = 50 * time.Millisecond
	for end := time.Now().Add(most); !done(); e.pause(step) {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}
