package reprisefasthttp

import (
	"context"

	"github.com/valyala/fasthttp"

	"github.com/reprise-go/reprise/core/protocol"
)

// recording is one run of a handler, whose response fasthttp holds in memory.
type recording[C any] struct {
	f     *Framework[C]
	c     C
	x     *protocol.Exchange
	ctx   *fasthttp.RequestCtx
	owner ownership
	resp  *fasthttp.Response // of the run: that of ctx, or the one that takes its place
	outer *fasthttp.Response // has the header as outer layers left it
	given context.Context    // of the framework, outside of the run

	hijacked bool               // before the run, for the last request of a context that is used again
	timeout  *fasthttp.Response // before the run, as above
	instead  bool               // resp takes the place of the response of ctx

	wrote    bool  // the handler wrote its response to the client itself, and returned an error
	reported error // that stands beside the response
	finished bool  // the exchange is finished, or about to be
	live     bool  // the response streams, and the stream finishes and closes the exchange
}

// run runs the rest of the chain in an exchange.
func (f *Framework[C]) run(c C, in *input, ctx *fasthttp.RequestCtx, x *protocol.Exchange) error {
	r := recording[C]{
		f: f, c: c, x: x, ctx: ctx, resp: &ctx.Response, outer: fasthttp.AcquireResponse(), given: f.Context(c),
		hijacked: ctx.Hijacked(), timeout: ctx.LastTimeoutErrorResponse(), owner: own(ctx, x),
	}
	r.resp.Header.CopyTo(&r.outer.Header)
	x.Before(fields(&r.outer.Header, false))
	defer r.close() // also where the chain panics
	f.SetContext(c, x.Context())
	if request := &ctx.Request; request.IsBodyStream() {
		request.SetBodyStream(x.Body(), request.Header.ContentLength())
	}
	err := f.Next(c)
	if f.Unrouted != nil && in.hasTrailers() && (err != nil || r.madeNone()) && f.Unrouted(c, err) {
		protocol.Release(x.Context()) // no handler ran, and fasthttp may have refused the trailer section
	}
	switch late := ctx.LastTimeoutErrorResponse(); {
	case !r.owns():
		return err
	case late != r.timeout:
		r.take(late)
		r.reported = err
	case err != nil && r.sent(err):
		r.wrote = true
	case err != nil:
		f.Respond(c, err)
		err = nil
	}
	r.finish()
	return err
}

// owns reports whether the response is that of this run. It is not where the context
// serves another request, and not where a layer outside gave up waiting for the chain
// when its deadline passed: that layer may be writing its own response in the same place.
func (r *recording[C]) owns() bool { return r.owner.holds() && !r.abandoned() }

// abandoned reports whether a layer outside stopped waiting for the chain.
func (r *recording[C]) abandoned() bool {
	return r.mayBeAbandoned() && r.given.Err() != nil && r.f.Abandoned(r.c)
}

// mayBeAbandoned reports whether a layer outside may stop waiting for the chain.
func (r *recording[C]) mayBeAbandoned() bool {
	_, bounded := r.given.Deadline()
	return bounded && r.f.Abandoned != nil
}

// take makes late the response of the run: fasthttp sends it in place of that of the
// context, which a handler may go on to write. The copy is that of this run alone.
func (r *recording[C]) take(late *fasthttp.Response) {
	r.resp, r.instead = new(fasthttp.Response), true
	late.CopyTo(r.resp)
}

// close ends the run. A handler that goes on behind a timeout inside keeps the values of
// the request, so that they do not change below it.
func (r *recording[C]) close() {
	owns := r.owns()
	if !r.finished && !r.live {
		r.abandon(owns && !r.instead)
	}
	switch {
	case owns && r.instead:
		r.ctx.TimeoutErrorWithResponse(r.resp)
	case owns:
		r.f.SetContext(r.c, r.given)
		r.owner.end()
	}
	if !r.live {
		r.x.Close()
	}
	fasthttp.ReleaseResponse(r.outer)
}

// abandon finishes the exchange of a handler that did not return, or not in time: it
// panicked, ended its goroutine, or outlived a timeout. A panic goes on, and a response
// that is the run's is as it was before the handler.
func (r *recording[C]) abandon(owns bool) {
	r.finished = true
	if !owns {
		r.x.Finish(protocol.Captured{Cut: true})
		return
	}
	started := r.resp.IsBodyStream() || len(r.resp.Body()) > 0
	r.x.Finish(protocol.Captured{Status: r.resp.StatusCode(), Panicked: !started, Cut: started})
	r.outer.Header.CopyTo(&r.resp.Header)
	r.resp.ResetBody()
}
