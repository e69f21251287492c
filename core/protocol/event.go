package protocol

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/protocol/internal/spool"
)

// The kinds of events that a guard reports, besides those of its engine.
var (
	// EventPanic says that a function of the policy panicked beside the outcome of its
	// request.
	EventPanic = &reprise.EventKind{Name: "panic", Level: slog.LevelError, Message: "reprise: a function of the policy panicked"}

	// EventBlobError says that a response body could not be written to, or read from, the
	// blob store: see [Offloading].
	EventBlobError = &reprise.EventKind{
		Name: "blob-error", Level: slog.LevelError, Message: "reprise: a response body could not be written to, or read from, the blob store",
	}

	// EventDescription says that the description of a request has its key in it, and is not
	// kept: see [Config.Describe].
	EventDescription = &reprise.EventKind{
		Name: "description-withheld", Level: slog.LevelWarn,
		Message: "reprise: Config.Describe returned a text with the key in it, which the record does not keep",
	}

	// EventReported says that an error stands beside a complete response that is no
	// failure: see [Ending].
	EventReported = &reprise.EventKind{
		Name: "error-reported", Level: slog.LevelWarn,
		Message: "reprise: a handler reported an error beside a complete response, which is its result",
	}

	// EventBodyConsumed says that a request was refused because a layer outside consumed
	// its body: once for each policy, with the likely mistake as the Reason.
	EventBodyConsumed = &reprise.EventKind{
		Name: "body-consumed", Level: slog.LevelWarn, Always: true,
		Message: "reprise: a request was refused because nothing, or only a rest, is left of its body",
	}

	// EventBodyOmitted says that a response body was not kept, because it is too large: once
	// for each policy, with the limit to raise as the Reason.
	EventBodyOmitted = &reprise.EventKind{
		Name: "body-omitted", Level: slog.LevelWarn, Always: true,
		Message: "reprise: a response body is not kept, because it is too large; its retries do not get it",
	}
)

// kinds are those of a guard, which declares them.
var kinds = []*reprise.EventKind{EventPanic, EventBlobError, EventDescription, EventReported, EventBodyConsumed, EventBodyOmitted}

// count counts a refusal before Begin, and notifies the engine's observer of it.
func (g *Guard) count(ctx context.Context, code Code, err error) {
	g.engine.Refuse(ctx, g.cfg.Label, g.problems.of(code).Outcome, err)
}

// report notifies the engine's observer of something that the engine did not see.
func (g *Guard) report(ctx context.Context, event reprise.Event) {
	event.Label = g.cfg.Label
	g.engine.Report(ctx, event)
}

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

// Why a decision has no effect.
const (
	vainOutside     = "its context has no run: the request has no key, or no middleware of this module runs its handler, or the context is not the handler's"
	vainLate        = "the response of the handler was taken before"
	vainUnprotected = "the handler runs without a claim (Config.FailOpen)"
)

// vain warns of decisions that had no effect, which few handlers look for in their
// result: once for each function and reason.
type vain struct{ said sync.Map }

// outside is for decisions outside of a run: no guard knows of them.
var outside vain

// warn logs that a function had no effect, with a nil log to [slog.Default]. The warning
// has no data of the request.
func (v *vain) warn(ctx context.Context, log *slog.Logger, function, label, reason string) {
	if _, said := v.said.LoadOrStore([2]string{function, reason}, nil); said {
		return
	}
	defer func() { _ = recover() }() // of the logger's handler
	if log == nil {
		log = slog.Default()
	}
	log.WarnContext(ctx, "reprise: a decision of a handler had no effect; this is said once",
		slog.String("function", function), slog.String("label", label), slog.String("reason", reason))
}

// inVain warns of a decision about an exchange.
func (x *Exchange) inVain(ctx context.Context, function, reason string) {
	g := x.guard
	g.vain.warn(ctx, g.engine.Config().Log, function, g.cfg.Label, reason)
}
