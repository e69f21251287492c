package protocol

import (
	"context"
	"iter"
	"strings"
	"sync"

	reprise "github.com/reprise-go/reprise/core"
)

// Exchange is one run of a handler: its context and body, and what becomes of its response. An adapter runs the handler with
// them, ends the exchange once, and closes it when the response was sent:
//
//   - where the framework writes as net/http does, by [Exchange.Record] and the [Recorder]'s Finish or Abandon;
//   - where the framework holds the response as a whole, by [Exchange.Settle].
type Exchange struct {
	guard   *Guard
	attempt *reprise.Attempt // nil: it runs unprotected, because the policy fails open
	ctx     exchangeContext
	body    Body
	rec     Recorder
	scratch *scratch

	mu       sync.Mutex // guards what follows
	decision Disposition
	omitBody bool
	over     bool
}

// scratch is the memory of an exchange that the next one uses again.
type scratch struct {
	request   []byte  // the request's body
	response  []byte  // the response's body
	payload   []byte  // its encoded form
	outer     []Field // the header when the handler started
	committed []Field // the header when the handler wrote it
	changed   []Field // the difference of the two
	kept      []Field // and what is kept of that
}

// largestScratch is the largest buffer that is used again; larger ones are left to the collector, so that a few large
// bodies do not stay for ever.
const largestScratch = 256 << 10

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// free gives the memory to the next exchange.
func (s *scratch) free() {
	*s = scratch{
		request: again(s.request), response: again(s.response), payload: again(s.payload),
		outer: emptied(s.outer), committed: emptied(s.committed), changed: emptied(s.changed), kept: emptied(s.kept),
	}
	scratches.Put(s)
}

func again(b []byte) []byte {
	if cap(b) > largestScratch {
		return nil
	}
	return b[:0]
}

// emptied returns the memory of fields without what they refer to.
func emptied(fields []Field) []Field {
	clear(fields)
	return fields[:0]
}

// newExchange makes the exchange in which the handler runs. Without an attempt it runs unprotected.
func newExchange(ctx context.Context, g *Guard, a *reprise.Attempt, s *scratch, body []byte) *Exchange {
	x := &Exchange{guard: g, attempt: a, scratch: s, body: Body{data: body}}
	x.ctx = exchangeContext{Context: ctx, x: x}
	return x
}

// Context returns the context to run the handler with: it is not cancelled when the client leaves, but when the attempt loses its
// lease. See [reprise.Attempt.Context].
func (x *Exchange) Context() context.Context { return &x.ctx }

// Body returns the body of the request, to be read by the handler.
func (x *Exchange) Body() *Body { return &x.body }

// Buffered reports whether no part of the response may leave before Settle, because the effects commit with it.
func (x *Exchange) Buffered() bool { return x.attempt != nil && x.attempt.Atomic() }

// Mark returns the field to set on a response that leaves before Settle, as a stream; none if its name is empty.
func (x *Exchange) Mark() Field {
	if x.attempt == nil {
		return markUnprotected
	}
	return Field{}
}

// MaxResponseBody returns how many bytes of the response's body are kept at most.
func (x *Exchange) MaxResponseBody() int { return x.guard.cfg.MaxResponseBody }

// Close lets go of the memory of the exchange. It comes after the response was sent; neither the handler nor the adapter may
// use what the exchange handed out any more. A handler that does all the same gets errors, not another request's bytes.
func (x *Exchange) Close() {
	s := x.scratch
	if s == nil {
		return
	}
	x.scratch = nil
	x.body.drop()
	x.rec.close()
	s.free()
}

// Before takes the header of the response as outer layers left it to the handler, and After as the handler left it: what is
// kept is the difference. They are for frameworks that hold the response as a whole; a [Recorder] does it by itself. The strings of After have to stay
// what they are until Settle returns; those of Before are copied.
func (x *Exchange) Before(header iter.Seq2[string, string]) {
	x.scratch.outer = x.scratch.outer[:0]
	for name, value := range header {
		x.scratch.outer = appendGrouped(x.scratch.outer, strings.Clone(name), strings.Clone(value))
	}
}

// After is described at Before.
func (x *Exchange) After(header iter.Seq2[string, string]) {
	x.scratch.committed = x.scratch.committed[:0]
	for name, value := range header {
		x.scratch.committed = appendGrouped(x.scratch.committed, name, value)
	}
}

// Captured is the response that a handler made, but for its header.
type Captured struct {
	Status int
	Body   []byte // ignored with Oversize

	Oversize bool // the body is over MaxResponseBody
	Sent     bool // it left already, as a stream: nothing can take its place
	Panicked bool // the handler did not return, and had not written anything
	Cut      bool // it did not return after it had written something, or took the connection
}

// Reply is what to send.
type Reply struct {
	Replace  bool     // send Response instead of the handler's own
	Response Response // with Replace
	Mark     Field    // otherwise a field to set on the handler's own; none if its name is empty
}

// Settle keeps or releases what came of the handler, before its response leaves, and says what to send. An exchange is settled once.
func (x *Exchange) Settle(c Captured) Reply {
	decision, omit := x.close()
	c.Oversize = c.Oversize || len(c.Body) > x.guard.cfg.MaxResponseBody
	if x.attempt == nil {
		return Reply{Mark: x.Mark()}
	}
	if x.attempt.Atomic() && c.Oversize {
		_ = x.attempt.Release() // a rollback that fails is one all the same: the connection is gone
		return x.instead(c, x.guard.problems.answer(CodeResponseTooLarge, 0))
	}
	e := whole
	switch {
	case c.Panicked:
		e = panicked
	case c.Cut, c.Status < 200, c.Status > 999:
		e = cut
	}
	policy := Default
	if x.guard.cfg.Outcome != nil && e == whole {
		policy = x.guard.cfg.Outcome(c.Status)
	}
	s := stored{status: c.Status}
	switch fateOf(e, c.Status, x.guard.cfg.Preset, decision, policy) {
	case release:
		_ = x.attempt.Release() // it goes on in the background where it failed; the response is true either way
		return Reply{}
	case keepEmpty:
		s.status = 500
	case keepCut:
		s.status, s.flags = 500, storedCut
	default:
		x.fill(&s, &c, omit)
	}
	x.scratch.payload = appendStored(x.scratch.payload[:0], &s)
	end, err := x.attempt.Complete(reprise.Completion{Payload: x.scratch.payload, DiscardEffects: s.status >= 400})
	if err != nil {
		return Reply{} // ended before, which Settle never does
	}
	return x.reply(c, end)
}

// close ends the time for decisions and returns what the handler decided.
func (x *Exchange) close() (decision Disposition, omitBody bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.over = true
	return x.decision, x.omitBody
}

// fill makes of a whole response what is stored of it.
func (x *Exchange) fill(s *stored, c *Captured, omit bool) {
	g := x.guard
	m := x.scratch
	m.changed = appendChanges(m.changed[:0], m.outer, m.committed)
	kept, cookies := g.fields.filter(m.kept[:0], m.changed)
	m.kept = kept
	g.counts.cookies.Add(uint64(cookies)) //nolint:gosec // a count is not negative
	switch {
	case !fitsStored(kept):
		g.counts.headers.Add(1)
		s.flags = storedCut
	case c.Oversize, omit && len(c.Body) > 0:
		s.fields, s.flags = kept, storedOmitted
	default:
		s.fields, s.body = kept, c.Body
	}
}

// reply is the table of what a client gets after its handler ran.
func (x *Exchange) reply(c Captured, end reprise.CompleteResult) Reply {
	g := x.guard
	switch end.Status {
	case reprise.Unrecorded:
		return Reply{Mark: markUnrecorded}
	case reprise.Superseded:
		return x.instead(c, g.replay(end.Payload))
	case reprise.Contested:
		if g.cfg.Preset == reprise.AtMostOnce {
			return x.instead(c, g.problems.answer(CodeOutcomeUnknown, 0))
		}
		return x.instead(c, g.problems.answer(CodeInProgress, retryRunning))
	case reprise.RolledBack:
		return x.instead(c, g.problems.answer(CodeNotApplied, retryRunning))
	case reprise.Undecided:
		return x.instead(c, g.problems.answer(CodeStoreUnavailable, retryStore))
	default: // Recorded
		return Reply{}
	}
}

// instead answers with r, unless the handler's own response, or none at all, is what the client gets.
func (x *Exchange) instead(c Captured, r Response) Reply {
	if c.Sent || c.Panicked || c.Cut {
		return Reply{}
	}
	return Reply{Replace: true, Response: r}
}
