package protocol

import (
	"context"
	"log/slog"
	"sync"
)

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
	g.vain.warn(ctx, g.engine.Config().Log, function, g.cfg.Name, reason)
}
