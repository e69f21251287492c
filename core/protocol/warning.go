package protocol

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/protocol/internal/spool"
)

// warnings are those that a guard has given. Each is about how the service is set up, and
// operators need it once. It has no part of a request.
type warnings struct{ consumed, omitted atomic.Bool }

// first reports whether a warning is given for the first time.
func first(given *atomic.Bool) bool { return !given.Load() && given.CompareAndSwap(false, true) }

// warnConsumed warns of a request that was refused because a layer outside consumed its
// body (R50), and names the likely mistake. rest says that something is left of the body.
func (g *Guard) warnConsumed(ctx context.Context, req *Request, rest bool) {
	if !first(&g.warned.consumed) {
		return
	}
	reason := "a layer outside the middleware, or the scope function, read the body and did not put it back"
	switch {
	case rest:
		reason = "a layer outside the middleware, or the scope function, decoded a value from the body and did not put it back"
	case req.Length < 0:
		reason += ", or the client sent an empty body of unknown length with a Content-Type"
	}
	g.report(ctx, reprise.Event{Kind: EventBodyConsumed, Reason: reason + "; see docs/guides/middlewares.md, layers that read the body"})
}

// warnOmitted warns of a response body that is too large to be kept (R35), and names the
// limit to raise. The failure of a blob store is a separate event.
func (x *Exchange) warnOmitted() {
	cfg := &x.guard.cfg
	if x.unkept != nil && !errors.Is(x.unkept, spool.ErrLimit) || !first(&x.guard.warned.omitted) {
		return
	}
	var reason string
	switch {
	case !cfg.Offload.writes():
		reason = fmt.Sprintf("it is longer than Config.Limits.ResponseBody, %d bytes: raise the limit, or keep such bodies with Config.Offload", cfg.Limits.ResponseBody)
	case x.unkept != nil:
		reason = fmt.Sprintf("it is longer than Config.Offload.MaxBody, %d bytes: raise the limit", cfg.Offload.MaxBody)
	default:
		reason = fmt.Sprintf("it is longer than Config.Limits.ResponseBody, %d bytes, and Config.Offload keeps neither messages nor bodies with trailers: raise the limit", cfg.Limits.ResponseBody)
	}
	x.guard.report(x.Context(), reprise.Event{Kind: EventBodyOmitted, ID: x.attempt.ID(), Reason: reason})
}
