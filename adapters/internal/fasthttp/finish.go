package reprisefasthttp

import (
	"bytes"
	"errors"
	"io"
	"net"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/reprise-go/reprise/core/protocol"
)

// finish finishes the exchange of a handler that returned, or leaves it to its stream.
func (r *recording[C]) finish() {
	tidy(r.x, &r.resp.Header)
	captured := protocol.Captured{Status: r.resp.StatusCode()}
	typed := r.owner.number == 0 // a host that copies the header, as adaptor.FiberApp, sends its media type anyway
	switch {
	case r.lostStream():
		captured.Unkeepable = true
	case r.ctx.Hijacked() && !r.hijacked, r.dropped():
		captured.Cut, captured.Sent = true, true // another response, or none
	case captured.Status == fasthttp.StatusNoContent, captured.Status == fasthttp.StatusNotModified:
		typed = typed || r.resp.Header.ContentLength() != 0 // fasthttp sends its media type then
		_ = r.resp.CloseBodyStream()                        // as fasthttp does, which sends no body
	case !r.resp.IsBodyStream():
		captured.Body = r.resp.Body()
	default:
		r.declare()
		capture := r.x.Capture(int64(r.resp.Header.ContentLength()))
		if !capture.HoldBack() {
			r.goLive(capture)
			return
		}
		captured = r.readStream(capture)
	}
	captured.Reported = r.reported
	header, settled := r.settle(&captured)
	if !settled {
		return
	}
	r.finished = true
	r.x.After(fields(header, typed || len(captured.Body) > 0))
	if r.resp.IsBodyStream() && r.resp.Header.ContentLength() < 0 { // fasthttp sends trailers after chunks only
		r.x.Trailers(trailers(header))
	}
	r.reply(r.x.Finish(captured), captured.Cut)
}

// reply changes the response as the protocol replies.
func (r *recording[C]) reply(reply protocol.Reply, cut bool) {
	switch {
	case !r.owns(): // the response is no longer sent
		reply.Close()
		return
	case reply.Replace:
		r.outer.Header.CopyTo(&r.resp.Header)
		write(r.resp, reply.Response)
	default:
		mark(&r.resp.Header, reply.Mark)
	}
	if reply.Stream != nil {
		r.sendHeld(reply, cut)
	}
}

// settle returns the response header to record. A layer that answers early writes its own
// response after it said so: under a deadline, the recorded bytes are copies from before.
func (r *recording[C]) settle(captured *protocol.Captured) (header *fasthttp.ResponseHeader, settled bool) {
	header = &r.resp.Header
	if r.mayBeAbandoned() {
		header = new(fasthttp.ResponseHeader)
		r.resp.Header.CopyTo(header)
		captured.Body = bytes.Clone(captured.Body)
	}
	return header, r.owns()
}

// declare gives a stream the length that fasthttp will send with it.
func (r *recording[C]) declare() {
	h := &r.resp.Header
	if h.ContentLength() == 0 && len(h.Peek(fasthttp.HeaderContentLength)) == 0 {
		// The status allowed no body when the stream was set, and fasthttp took no length: it
		// would declare none, send no response, and close the connection.
		h.SetContentLength(-1)
	}
	if limited, ok := r.resp.BodyStream().(*io.LimitedReader); ok && h.ContentLength() < 0 {
		h.SetContentLength(int(limited.N))
	}
}

// declared reports whether the response has a length, or chunks, as it has once it was
// written.
func (r *recording[C]) declared() bool {
	h := &r.resp.Header
	return h.ContentLength() < 0 || len(h.Peek(fasthttp.HeaderContentLength)) > 0
}

// sent reports whether the handler wrote its response to the client itself, as by End,
// and returned err after that: because the client left (R23), or for a reason that stands
// beside the response (R33d). A handler that failed to write anything else, such as early
// hints, has made no response yet.
func (r *recording[C]) sent(err error) bool {
	if !r.declared() {
		return false
	}
	if isClosed(r.ctx.Conn()) { // after a response, so that a later write fails too
		r.reported = err
		return true
	}
	// The address in the error of a write is that of its connection itself, and no equal
	// one.
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "write" && op.Source != nil && op.Source == r.ctx.LocalAddr()
}

// dropped reports whether the handler closed the connection and made no response, as by
// the Drop of Fiber v3. A response that it sent itself, as by End, has a length.
func (r *recording[C]) dropped() bool {
	return r.madeNone() && len(r.resp.Header.Peek(fasthttp.HeaderContentLength)) == 0 && isClosed(r.ctx.Conn())
}

// madeNone reports whether the response has no body, and the status from outside.
func (r *recording[C]) madeNone() bool {
	return !r.resp.IsBodyStream() && len(r.resp.Body()) == 0 && r.resp.StatusCode() == r.outer.StatusCode()
}

// lostStream reports whether the handler sent a stream itself, as by End: only its length
// is left.
func (r *recording[C]) lostStream() bool {
	return r.declared() && !r.resp.IsBodyStream() && len(r.resp.Body()) != r.resp.Header.ContentLength() &&
		(r.wrote || isClosed(r.ctx.Conn()))
}

// isClosed reports whether the connection was closed at this end. fasthttp sets the write
// deadline later.
func isClosed(conn net.Conn) bool {
	defer func() { _ = recover() }() // the connection of a request that a test made has no deadline
	return errors.Is(conn.SetWriteDeadline(time.Time{}), net.ErrClosed)
}
