package reprisefiber

import (
	"io"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
)

// recording is one run of a handler, whose response Fiber holds in memory.
type recording struct {
	x     *protocol.Exchange
	ctx   *fasthttp.RequestCtx
	resp  *fasthttp.Response
	outer *fasthttp.Response // has the header as outer layers left it

	finished bool // the exchange is finished, or about to be
	live     bool // the response streams, and the stream finishes and closes the exchange
}

// run runs the rest of the chain in an exchange.
func run(c *fiber.Ctx, x *protocol.Exchange) error {
	r := recording{x: x, ctx: c.Context(), resp: c.Response(), outer: fasthttp.AcquireResponse()}
	r.resp.Header.CopyTo(&r.outer.Header)
	x.Before(fields(&r.outer.Header, false))
	userContext, outside := c.UserContext(), r.ctx.UserValue(store.ContextKey)
	defer func() { // also where the chain panics
		r.abandon()
		if r.owns() {
			c.SetUserContext(userContext)
			r.ctx.SetUserValue(store.ContextKey, outside)
		}
		r.close()
	}()
	c.SetUserContext(x.Context())
	r.ctx.SetUserValue(store.ContextKey, x.Context())
	if c.Request().IsBodyStream() {
		c.Request().SetBodyStream(x.Body(), c.Request().Header.ContentLength())
	}
	err := c.Next()
	if !r.owns() {
		return err
	}
	if err != nil {
		respond(c, err)
	}
	r.finish()
	return nil
}

// respond makes an error the response that Fiber makes of it.
func respond(c *fiber.Ctx, err error) {
	if c.App().ErrorHandler(c, err) != nil {
		_ = c.SendStatus(fiber.StatusInternalServerError) // which never fails
	}
}

// owns reports whether the request context is still that of this run. A chain that
// outlived a timeout, as the deprecated timeout.New lets it, finds another request there,
// and must not touch it.
func (r *recording) owns() bool { return r.ctx.UserValue(store.ContextKey) == r.x.Context() }

// finish finishes the exchange of a handler that returned, or leaves it to its stream.
func (r *recording) finish() {
	tidy(r.x, &r.resp.Header)
	captured := protocol.Captured{Status: r.resp.StatusCode()}
	switch {
	case r.ctx.Hijacked(), r.ctx.LastTimeoutErrorResponse() != nil:
		captured.Cut, captured.Sent = true, true // another response, or none
	case captured.Status == fiber.StatusNoContent, captured.Status == fiber.StatusNotModified:
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
	r.finished = true
	r.x.After(fields(&r.resp.Header, len(captured.Body) > 0))
	if r.resp.IsBodyStream() && r.resp.Header.ContentLength() < 0 { // fasthttp sends trailers after chunks only
		r.x.Trailers(trailers(&r.resp.Header))
	}
	reply := r.x.Finish(captured)
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

// lostLength reports whether fasthttp took no length with the stream of the response,
// because the status at that time allowed no body, and would declare none now: it would
// send nothing, and close the connection.
func (r *recording) lostLength() bool {
	h := &r.resp.Header
	return h.ContentLength() == 0 && len(h.Peek(fiber.HeaderContentLength)) == 0
}

// abandon finishes the exchange of a handler that did not return, or not in time: it
// panicked, ended its goroutine, or outlived a timeout. A panic goes on, and the response
// is as it was before the handler.
func (r *recording) abandon() {
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
func (r *recording) close() {
	if !r.live {
		r.x.Close()
	}
	fasthttp.ReleaseResponse(r.outer)
}
