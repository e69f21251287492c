package operate

import (
	"context"
	"log/slog"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/store"
)

// auditLevel returns the level of a transition.
func auditLevel(e *reprise.Event) slog.Level {
	if e.Kind != nil {
		return e.Kind.Level
	}
	switch e.End {
	case reprise.EndSuperseded, reprise.EndContested, reprise.EndNotApplied, reprise.EndUnknown:
		return slog.LevelWarn
	case reprise.EndUnrecorded, reprise.EndUndecided, reprise.EndDropped:
		return slog.LevelError
	default: // its outcome decides
	}
	if e.Outcome == reprise.Lapsed || e.Outcome == reprise.Unprotected || e.Outcome == reprise.Claimed && e.Attempt > 1 {
		return slog.LevelWarn
	}
	return slog.LevelInfo
}

// NewAuditLog returns an observer that logs every transition as one structured record:
// the event as the message, and the attributes outcome, end, label, id (12 digits), scope
// (hashed), attempt, fence, elapsed, state, forgotten, operator, reason and error where
// they apply. It logs no key. A nil logger means the default logger at the time of the
// call to NewAuditLog.
func NewAuditLog(log *slog.Logger) reprise.Observer {
	if log == nil {
		log = slog.Default()
	}
	return reprise.ObserverFunc(func(ctx context.Context, e reprise.Event) {
		level := auditLevel(&e)
		if !log.Enabled(ctx, level) {
			return
		}
		attrs := make([]slog.Attr, 0, 13)
		if e.Counted && e.Outcome != 0 {
			attrs = append(attrs, slog.String("outcome", e.Outcome.String()))
		}
		if e.Counted && e.End != 0 {
			attrs = append(attrs, slog.String("end", e.End.String()))
		}
		if e.Label != "" {
			attrs = append(attrs, slog.String("label", e.Label))
		}
		if e.ID != (store.ID{}) {
			attrs = append(attrs, slog.String("id", e.ID.Short()))
		}
		if e.Scope != "" {
			attrs = append(attrs, slog.String("scope", e.Scope))
		}
		if e.Attempt > 0 {
			attrs = append(attrs, slog.Int("attempt", e.Attempt), slog.Uint64("fence", e.Fence))
		}
		attrs = append(attrs, slog.Duration("elapsed", e.Elapsed))
		if e.Kind == reprise.EventResolved {
			attrs = append(attrs, slog.String("state", e.State.String()), slog.Bool("forgotten", e.Forgotten), slog.String("operator", e.Operator))
		}
		if e.Reason != "" {
			attrs = append(attrs, slog.String("reason", e.Reason))
		}
		if e.Err != nil {
			attrs = append(attrs, slog.String("error", e.Err.Error()))
		}
		log.LogAttrs(ctx, level, "idempotency "+e.Name(), attrs...)
	})
}
