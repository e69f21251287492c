package protocol

import (
	"context"
	"errors"
	"io"
	"iter"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/internal/record"
	"github.com/reprise-go/reprise/core/protocol/internal/spool"
)

// Exchange is one run of a handler: the context and the body to run it with, and the fate
// of its response. An adapter runs the handler, finishes the exchange once, and then
// closes it:
//
//   - where the framework writes as net/http does, through a [Recorder];
//   - where the framework holds the response in memory, with [Exchange.Before],
//     [Exchange.After] and [Exchange.Finish], in this order.
//
// docs/guides/adapter.md shows both.
type Exchange struct {
	guard   *Guard
	attempt *reprise.Attempt
	body    Body
	request *Request // for Config.Problems.Write and of a Call; else nil
	capture Capture
	scratch *scratch
	spool   *spool.Spool // of a body that is longer than Config.Limits.ResponseBody; nil if it is not kept
	unkept  error        // why such a body could not be kept; nil if that was not tried, or not in vain

	version      version
	trailersLost bool // the client of this run does not get the trailers, and no other one should

	left atomic.Bool // see ClientLeft

	mu       sync.Mutex // guards the fields below, and scratch against Close
	decision Decision
	omitBody bool
	finished bool
	reason   string // of OutcomeUnknown
}

// Context returns the context to run the handler with. It is not cancelled when the
// client leaves, but when the attempt loses its lease. See [reprise.Attempt.Context].
func (x *Exchange) Context() context.Context { return exchangeContext{x} }

// Body returns the body of the request, to be read by the handler.
func (x *Exchange) Body() *Body { return &x.body }

// Buffered reports whether the whole response has to wait for Finish, because the effects
// commit with it.
func (x *Exchange) Buffered() bool { return x.attempt.Transactional() }

// Mark returns the field to set on a response that leaves before Finish, as a stream. Its
// name is empty if there is none.
func (x *Exchange) Mark() Field {
	if x.attempt.Unprotected() {
		return markUnprotected
	}
	return Field{}
}

// Close releases the buffers of the exchange: the body of the request, and the bytes of a
// [Capture]. Call it when the response was sent, or was copied into memory of the
// framework. A handler that still uses its context or body gets an error, never the bytes
// of another request.
func (x *Exchange) Close() {
	x.mu.Lock()
	s := x.scratch
	x.scratch = nil
	x.mu.Unlock()
	if s == nil {
		return
	}
	x.dropSpool()
	x.body.drop()
	s.free()
}

// Before takes the response header as the outer layers left it to the handler, without
// fields that the framework fills in itself. The difference to the header that After
// takes is kept. Before and After are for frameworks that hold the response in memory; a
// [Recorder] calls neither. The strings are copied.
func (x *Exchange) Before(header iter.Seq2[string, string]) {
	x.scratch.outer = x.scratch.outer[:0]
	for name, value := range header {
		x.scratch.outer = appendGrouped(x.scratch.outer, strings.Clone(name), strings.Clone(value))
	}
}

// After takes the response header as the handler left it. The strings must not change
// until Finish returns.
func (x *Exchange) After(header iter.Seq2[string, string]) {
	x.scratch.committed = x.scratch.committed[:0]
	for name, value := range header {
		x.scratch.committed = appendGrouped(x.scratch.committed, name, cleanValue(value))
	}
}

// Trailers takes the trailer fields that the handler set, if the framework sends them.
// The strings must not change until Finish returns. See Captured.Unkeepable for
// frameworks that cannot send trailers with a replay.
func (x *Exchange) Trailers(trailers iter.Seq2[string, string]) {
	x.scratch.trailers = x.scratch.trailers[:0]
	for name, value := range trailers {
		x.scratch.trailers = appendGrouped(x.scratch.trailers, name, cleanValue(value))
	}
}

// Captured is the response of a handler, except for its header and its trailers.
type Captured struct {
	Status int
	Body   []byte // ignored with Oversize

	Oversize bool // the body is longer than Config.Limits.ResponseBody
	Sent     bool // the response has left already, as a stream, but for its last bytes
	Panicked bool // the handler did not return, and had written no byte, not even to memory
	Cut      bool // the response was cut short, also by a panic; or the connection was taken

	// Reported is an error that stands beside the response: see [Ending].Reported.
	Reported error

	// Unkeepable says that the response has a part which the framework cannot send again,
	// such as trailers. It is not kept in part: its retries get 409 result-unavailable.
	Unkeepable bool
}

// gone reports whether no reply can replace the handler's: the client has it, or gets
// none.
func (c *Captured) gone() bool { return c.Sent || c.Panicked || c.Cut }

// Reply is the reply to send.
type Reply struct {
	Replace  bool     // send Response instead of the handler's own
	Response Response // with Replace
	Mark     Field    // without Replace: a field to set on the handler's own; none if its name is empty

	// Stream, without Replace, is the body of a response that was not sent, and that the
	// exchange took because it is too long for memory. Length is its length. The adapter
	// that sends it closes it. Nil leaves the body where the handler left it.
	Stream io.ReadCloser
	Length int64
}

// Close closes the streams of a reply, of which there is one at most: a [Recorder] does
// after it has sent the reply, and an adapter whose framework sends no part of it.
func (r Reply) Close() {
	r.Response.Close()
	Response{Stream: r.Stream}.Close()
}

// Finish resolves the attempt before its response leaves, or before the last bytes of a
// stream do, and returns the reply to send: the response is kept, or the claim is
// released. A reply to Sent or Panicked is only closed, and so is that of a handler that
// took the connection. Call Finish once. It panics if Config.Keep.Decide does.
func (x *Exchange) Finish(c Captured) Reply {
	x.attempt.Returned()
	x.flushSpool()
	reply := x.finish(c)
	if x.spool != nil && !c.Sent && !reply.Replace {
		reply.Stream, reply.Length = x.spool.Body(), x.spool.Length()
		x.spool = nil
	}
	x.dropSpool()
	return reply
}

// end is how a run ended, and what was decided about its response.
type end struct {
	Captured
	exit    exit
	meaning int      // the status that the response means
	handler Decision // of the handler
	policy  Decision // of Config.Keep.Decide
	omit    bool     // the handler has said that the body is not to be stored

	annotation string // of Config.Keep.Annotate
	announced  Field  // until when a recorded response is replayed; none if its name is empty
}

func (x *Exchange) finish(c Captured) Reply {
	e := end{Captured: c, meaning: x.meaning(c.Status)}
	x.mu.Lock()
	e.handler, e.omit, x.finished = x.decision, x.omitBody, true // from now on decisions are refused
	x.mu.Unlock()
	e.Oversize = e.Oversize || len(e.Body) > x.guard.cfg.Limits.ResponseBody
	if x.attempt.Unprotected() {
		_ = x.attempt.Release() // no response is recorded
		return Reply{Mark: x.Mark()}
	}
	e.exit = x.exitOf(&e)
	if e.Reported != nil && e.exit == returned && e.meaning < 400 {
		x.reportBeside(e.Reported)
	}
	if keep := &x.guard.cfg.Keep; e.exit <= cancelled && (keep.Decide != nil || keep.Annotate != nil) {
		x.consult(&e)
	}
	if x.attempt.Transactional() && e.Oversize && e.handler != OutcomeUnknown && e.policy != OutcomeUnknown && !x.canOffload(&e.Captured) {
		return x.release(&e, !e.gone(), x.blobNotWritten)
	}
	return x.resolve(&e)
}

// consult asks the policy about a whole response. If a function of it panics, the attempt
// is resolved as for a panic of the handler (R33b).
func (x *Exchange) consult(e *end) {
	cfg, left := &x.guard.cfg.Keep, e.exit
	e.exit = panicked
	defer func() {
		if e.exit == panicked {
			x.resolve(e)
		}
	}()
	if cfg.Decide != nil {
		e.policy = cfg.Decide(Ending{Status: e.meaning, Head: x.head(e.Body), Reported: e.Reported})
	}
	e.annotation = x.guard.annotation(x.Context())
	e.exit = left
}

// resolve keeps or releases a response, and returns the reply to send.
func (x *Exchange) resolve(e *end) Reply {
	s := stored{Status: e.Status}
	switch resolve(e.exit, e.meaning, x.guard.cfg.Preset, e.handler, e.policy) {
	case unknown:
		return x.unknown(e)
	case release:
		rolledBack := e.exit == cut && x.attempt.Transactional() && !e.Sent && e.Status < 400 // a success that must not leave
		return x.release(e, rolledBack, func() Reply { return x.instead(CodeNotApplied) })
	case keepEmpty:
		s.Status, e.meaning = 500, 500
	case keepCut:
		s.Status, s.Flags, e.meaning = 500, record.Cut, 500
	default:
		if !x.fill(&s, e) {
			return x.release(e, true, x.blobNotWritten)
		}
	}
	s.Annotation = e.annotation
	done, err := x.attempt.Complete(reprise.Completion{Payload: x.encode(&s), DiscardEffects: e.meaning >= 400})
	if err != nil {
		return Reply{} // the attempt was resolved before, which Finish never does
	}
	return x.reply(e, done)
}

// release releases the claim, and returns the handler's response, or refuses it. A failed
// release is repeated in the background: the reply is true either way, unless the handler
// ended its transaction.
func (x *Exchange) release(e *end, refuses bool, refusal func() Reply) Reply {
	switch err := x.attempt.Release(); {
	case errors.Is(err, reprise.ErrTxEnded) && !e.Sent && !e.Panicked:
		return x.instead(CodeOutcomeUnknown)
	case refuses:
		return refusal()
	}
	return Reply{}
}

// unknown records that the outcome is unknown, for the reason of the handler, or because
// the policy decided so. The response leaves as it is.
func (x *Exchange) unknown(e *end) Reply {
	reason := x.reason // the handler has returned
	if e.handler != OutcomeUnknown {
		reason = "Config.Keep.Decide, for a response with the status " + strconv.Itoa(e.meaning)
	}
	if err := x.attempt.Unknown(reason); err != nil {
		return Reply{Mark: markUnrecorded}
	}
	return Reply{}
}

// encode returns the stored form of a response, in the memory of the exchange.
func (x *Exchange) encode(s *stored) []byte {
	m, seal := x.scratch, &x.guard.cfg.Seal
	if !x.guard.seals {
		m.payload = record.Append(m.payload[:0], s)
		return m.payload
	}
	m.encoded = record.Append(m.encoded[:0], s)
	m.payload = seal.appendSealed(m.payload[:0], m.encoded, x.sealedFor())
	return m.payload
}

// sealedFor names the operation for its envelope. x.mu is held, or the handler has
// returned.
func (x *Exchange) sealedFor() *record.SealedFor {
	return &record.SealedFor{ID: x.attempt.ID(), Fingerprint: x.scratch.fingerprint, Key: string(x.scratch.key)}
}

// omits reports whether the handler has said that its body is not to be stored.
func (x *Exchange) omits() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.omitBody
}

// fill sets the stored parts of a whole response. ok is false if its effects must be
// rolled back, because they commit with a body that cannot be kept now.
func (x *Exchange) fill(s *stored, e *end) (ok bool) {
	g, c, omit := x.guard, &e.Captured, e.omit
	m := x.scratch
	m.changed = appendChanges(m.changed[:0], m.outer, m.committed, m.set)
	kept, cookies := g.fields.filter(m.kept[:0], m.changed)
	g.counts.cookies.Add(uint64(cookies)) //nolint:gosec // a count is not negative
	own := len(kept)
	if e.announced = g.expiry(m.committed); e.announced.Name != "" {
		kept = append(kept, e.announced)
	}
	fields := len(kept)
	if !x.trailersLost {
		// They belong to the body, so that a list of fields to keep does not concern them.
		kept, _ = new(fieldPolicy).filter(kept, m.trailers)
	}
	if fields > own && !record.Fits(kept) { // the handler's own fields come first
		e.announced = Field{}
		kept, fields = slices.Delete(kept, own, fields), own
	}
	m.kept, ok = kept, true
	switch {
	case c.Unkeepable:
		s.Flags = record.Cut
	case !record.Fits(kept):
		g.counts.headers.Add(1)
		s.Flags = record.Cut
	case c.Oversize && !omit && x.canOffload(c):
		s.Fields, s.Flags = kept[:fields], record.Offloaded
		if s.Blob, ok = x.offload(c); !ok {
			s.Flags = record.Omitted
			ok = !x.attempt.Transactional()
		}
	case c.Oversize, omit && len(c.Body) > 0:
		s.Fields, s.Flags = kept[:fields], record.Omitted
	default:
		s.Fields, s.Trailers, s.Body = kept[:fields], kept[fields:], c.Body
	}
	if c.Oversize && !omit && ok && s.Flags == record.Omitted {
		x.warnOmitted()
	}
	if s.Flags != 0 && g.formOf(x.request, s) == formUnavailable {
		e.announced = Field{}
	}
	return ok
}

// reply is the table of a client's replies after its handler ran.
func (x *Exchange) reply(e *end, done reprise.CompleteResult) Reply {
	g := x.guard
	switch {
	case errors.Is(done.Err, reprise.ErrTxEnded) && !e.gone():
		return x.instead(CodeOutcomeUnknown)
	case done.End == reprise.EndUnrecorded, done.End == reprise.EndUnknown:
		return Reply{Mark: markUnrecorded}
	case e.gone():
		return Reply{}
	}
	switch done.End {
	case reprise.EndSuperseded:
		return Reply{Replace: true, Response: x.replayPayload(done.Payload)}
	case reprise.EndContested:
		if g.cfg.Preset == reprise.AtMostOnce {
			return x.instead(CodeOutcomeUnknown)
		}
		return x.instead(CodeInProgress)
	case reprise.EndNotApplied:
		return x.instead(CodeNotApplied)
	case reprise.EndUndecided:
		return x.instead(CodeStoreUnavailable)
	default: // Recorded
		return Reply{Mark: e.announced}
	}
}

// instead answers with a problem instead of the handler's response.
func (x *Exchange) instead(code Code) Reply {
	return Reply{Replace: true, Response: x.guard.problem(x.Context(), x.request, code)}
}
