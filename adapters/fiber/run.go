package reprisefiber

import (
	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"github.com/reprise-go/reprise/core/protocol"
)

// recording is one run of a handler, whose response Fiber holds as a whole.
type recording struct {
	x    *protocol.Exchange
	resp *fasthttp.Response

	// spare has the header as outer layers left it. Its body is what was read of a stream.
	spare *fasthttp.Response

	ended bool // the exchange is settled, or about to be
	live  bool // the response streams, and the stream ends the exchange
}

// run runs the rest of the chain in an exchange.
func run(c *fiber.Ctx, x *protocol.Exchange) error {
	r := recording{x: x, resp: c.Response(), spare: fasthttp.AcquireResponse()}
	outer := c.UserContext()
	r.resp.Header.CopyTo(&r.spare.Header)
	x.Before(fields(&r.spare.Header, false))
	defer func() { // also where the chain panics
		r.abandon()
		c.SetUserContext(outer)
		r.close()
	}()
	c.SetUserContext(x.Context())
	if c.Request().IsBodyStream() {
		c.Request().SetBodyStream(x.Body(), c.Request().Header.ContentLength())
	}
	if err := c.Next(); err != nil {
		respond(c, err)
	}
	r.finish(c.Context())
	return nil
}

// respond makes an error the response that Fiber makes of it.
func respond(c *fiber.Ctx, err error) {
	if c.App().ErrorHandler(c, err) != nil {
		_ = c.SendStatus(fiber.StatusInternalServerError) // which never fails
	}
}

// finish settles the exchange of a handler that returned, or leaves it to its stream.
func (r *recording) finish(ctx *fasthttp.RequestCtx) {
	dropControlFields(&r.resp.Header)
	captured := protocol.Captured{Status: r.resp.StatusCode()}
	switch {
	case ctx.Hijacked(), ctx.LastTimeoutErrorResponse() != nil:
		captured.Cut = true // another response, or none, is sent
	case captured.Status == fiber.StatusNoContent, captured.Status == fiber.StatusNotModified:
		_ = r.resp.CloseBodyStream() // as fasthttp does, which sends no body
	case !r.resp.IsBodyStream():
		captured.Body = r.resp.Body()
	case r.isShort():
		r.readStream(&captured)
	default:
		r.goLive()
		return
	}
	r.ended = true
	r.x.After(fields(&r.resp.Header, len(captured.Body) > 0))
	reply := r.x.Finish(captured)
	if reply.Replace {
		r.spare.Header.CopyTo(&r.resp.Header)
		write(r.resp, reply.Response)
	} else if reply.Mark.Name != "" {
		r.resp.Header.Set(reply.Mark.Name, reply.Mark.Value)
	}
}

// abandon settles the exchange of a handler that did not return: it panicked, or ended its goroutine. The panic goes on, and the response
// is as it was before the handler.
func (r *recording) abandon() {
	if r.ended || r.live {
		return
	}
	r.ended = true
	started := r.resp.IsBodyStream() || len(r.resp.Body()) > 0
	r.x.Finish(protocol.Captured{Status: r.resp.StatusCode(), Panicked: !started, Cut: started})
	r.spare.Header.CopyTo(&r.resp.Header)
	r.resp.ResetBody()
}

// close lets go of what the recording holds, unless a stream still needs it.
func (r *recording) close() {
	if r.live {
		return
	}
	r.x.Close()
	fasthttp.ReleaseResponse(r.spare)
}
