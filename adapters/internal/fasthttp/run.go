package reprisefasthttp

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
)

// recording is one run of a handler, whose response fasthttp holds in memory.
type recording[C any] struct {
	f     *Framework[C]
	c     C
	x     *protocol.Exchange
	ctx   *fasthttp.RequestCtx
	resp  *fasthttp.Response
	outer *fasthttp.Response // has the header as outer layers left it
	given context.Context    // of the framework, outside of the run

	clientLeft bool // the handler sent its response itself, and failed
	finished   bool // the exchange is finished, or about to be
	live       bool // the response streams, and the stream finishes and closes the exchange
}

// run runs the rest of the chain in an exchange.
func (f *Framework[C]) run(c C, ctx *fasthttp.RequestCtx, x *protocol.Exchange) error {
	r := recording[C]{f: f, c: c, x: x, ctx: ctx, resp: &ctx.Response, outer: fasthttp.AcquireResponse(), given: f.Context(c)}
	r.resp.Header.CopyTo(&r.outer.Header)
	x.Before(fields(&r.outer.Header, false))
	outside := ctx.UserValue(store.ContextKey)
	defer func() { // also where the chain panics
		r.abandon()
		if r.owns() {
			f.SetContext(c, r.given)
			ctx.SetUserValue(store.ContextKey, outside)
		}
		r.close()
	}()
	f.SetContext(c, x.Context())
	ctx.SetUserValue(store.ContextKey, x.Context())
	if request := &ctx.Request; request.IsBodyStream() {
		request.SetBodyStream(x.Body(), request.Header.ContentLength())
	}
	err := f.Next(c)
	if !r.owns() {
		return err
	}
	if err != nil {
		if r.clientLeft = r.isOfClient(err); !r.clientLeft {
			f.Respond(c, err)
		}
	}
	r.finish()
	return nil
}

// owns reports whether the response is that of this run. A chain that outlived a timeout
// finds another request in its context, or the response of the timeout, and must touch
// neither. After its deadline, a chain that runs outside the server's goroutine counts as
// abandoned by the layer that started it, because Fiber's timeout says so too late.
func (r *recording[C]) owns() bool {
	if r.f.Abandoned != nil && (r.f.Abandoned(r.c) || r.given.Err() != nil && !calls("github.com/valyala/fasthttp.(*Server).serveConn")) {
		return false
	}
	return r.ctx.UserValue(store.ContextKey) == r.x.Context()
}

// mayBeAbandoned reports whether a layer outside may stop waiting for the chain.
func (r *recording[C]) mayBeAbandoned() bool {
	_, bounded := r.given.Deadline()
	return bounded && r.f.Abandoned != nil
}

// finish finishes the exchange of a handler that returned, or leaves it to its stream.
func (r *recording[C]) finish() {
	tidy(r.x, &r.resp.Header)
	captured := protocol.Captured{Status: r.resp.StatusCode()}
	switch {
	case r.lostStream():
		captured.Unkeepable = true
	case r.ctx.Hijacked(), r.ctx.LastTimeoutErrorResponse() != nil, r.dropped():
		captured.Cut, captured.Sent = true, true // another response, or none
	case captured.Status == fasthttp.StatusNoContent, captured.Status == fasthttp.StatusNotModified:
		_ = r.resp.CloseBodyStream() // as fasthttp does, which sends no body
	case !r.resp.IsBodyStream():
		captured.Body = r.resp.Body()
	default:
		if r.lostLength() {
			r.resp.Header.SetContentLength(-1)
		}
		if limited, ok := r.resp.BodyStream().(*io.LimitedReader); ok && r.resp.Header.ContentLength() < 0 {
			r.resp.Header.SetContentLength(int(limited.N)) // as fasthttp declares it
		}
		capture := r.x.Capture(int64(r.resp.Header.ContentLength()))
		if !capture.HoldBack() {
			r.goLive(capture)
			return
		}
		captured = r.readStream(capture)
	}
	header, settled := r.settle(&captured)
	if !settled {
		return
	}
	r.finished = true
	r.x.After(fields(header, len(captured.Body) > 0))
	if r.resp.IsBodyStream() && r.resp.Header.ContentLength() < 0 { // fasthttp sends trailers after chunks only
		r.x.Trailers(trailers(header))
	}
	reply := r.x.Finish(captured)
	if !r.owns() { // the response is no longer sent
		if reply.Stream != nil {
			_ = reply.Stream.Close()
		}
		return
	}
	if reply.Replace {
		r.outer.Header.CopyTo(&r.resp.Header)
		write(r.resp, reply.Response)
	} else {
		add(&r.resp.Header, reply.Mark, reply.Added)
	}
	if reply.Stream != nil {
		r.sendHeld(reply, captured.Cut)
	}
}

// settle returns the response header to record. A layer that answers early may write its
// own response at any time: under a deadline, the recorded bytes are copies from before.
func (r *recording[C]) settle(captured *protocol.Captured) (header *fasthttp.ResponseHeader, settled bool) {
	header = &r.resp.Header
	if r.mayBeAbandoned() {
		header = new(fasthttp.ResponseHeader)
		r.resp.Header.CopyTo(header)
		captured.Body = bytes.Clone(captured.Body)
	}
	return header, r.owns()
}

// dropped reports whether the handler closed the connection and made no response, as by
// the Drop of Fiber v3. A response that it sent itself, as by End, has a length.
func (r *recording[C]) dropped() bool {
	h := &r.resp.Header
	return !r.resp.IsBodyStream() && len(r.resp.Body()) == 0 && h.StatusCode() == r.outer.StatusCode() &&
		len(h.Peek(fasthttp.HeaderContentLength)) == 0 && isClosed(r.ctx.Conn())
}

// lostStream reports whether the handler sent a stream itself, as by End: nothing is left
// of it but its length.
func (r *recording[C]) lostStream() bool {
	return r.declared() && !r.resp.IsBodyStream() && len(r.resp.Body()) != r.resp.Header.ContentLength() &&
		(r.clientLeft || isClosed(r.ctx.Conn()))
}

// declared reports whether the response has a length, or chunks, as it has once it was
// written.
func (r *recording[C]) declared() bool {
	h := &r.resp.Header
	return h.ContentLength() < 0 || len(h.Peek(fasthttp.HeaderContentLength)) > 0
}

// isOfClient reports whether a handler failed to write its response to the client (R23),
// as End does for a client that left. The response is still the handler's. A handler that
// failed to write anything else, such as early hints, has made no response yet.
func (r *recording[C]) isOfClient(err error) bool {
	var op *net.OpError
	if !r.declared() || !errors.As(err, &op) || op.Op != "write" || op.Source == nil || op.Addr == nil {
		return false
	}
	return op.Source.String() == r.ctx.LocalAddr().String() && op.Addr.String() == r.ctx.RemoteAddr().String()
}

// isClosed reports whether the connection was closed at this end. fasthttp sets the write
// deadline later.
func isClosed(conn net.Conn) bool {
	defer func() { _ = recover() }() // the connection of a request that a test made has no deadline
	return errors.Is(conn.SetWriteDeadline(time.Time{}), net.ErrClosed)
}

// lostLength reports whether fasthttp took no length with the stream of the response,
// because the status at that time allowed no body, and would declare none now: it would
// send no response, and close the connection.
func (r *recording[C]) lostLength() bool {
	h := &r.resp.Header
	return h.ContentLength() == 0 && len(h.Peek(fasthttp.HeaderContentLength)) == 0
}

// abandon finishes the exchange of a handler that did not return, or not in time: it
// panicked, ended its goroutine, or outlived a timeout. A panic goes on, and the response
// is as it was before the handler.
func (r *recording[C]) abandon() {
	if r.finished || r.live {
		return
	}
	r.finished = true
	if !r.owns() {
		r.x.Finish(protocol.Captured{Cut: true})
		return
	}
	started := r.resp.IsBodyStream() || len(r.resp.Body()) > 0
	r.x.Finish(protocol.Captured{Status: r.resp.StatusCode(), Panicked: !started, Cut: started})
	r.outer.Header.CopyTo(&r.resp.Header)
	r.resp.ResetBody()
}

// close releases the buffers of the recording.
func (r *recording[C]) close() {
	if !r.live {
		r.x.Close()
	}
	fasthttp.ReleaseResponse(r.outer)
}
