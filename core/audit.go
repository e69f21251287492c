package reprise

import (
	"context"
	"log/slog"

	"github.com/reprise-go/reprise/core/store"
)

// auditLevels gives the level of each transition; those that are not listed are logged at
// Info.
var auditLevels = map[EventKind]slog.Level{
	EventRenewed:     slog.LevelDebug,
	EventLapsed:      slog.LevelWarn,
	EventTakeover:    slog.LevelWarn,
	EventLeaseLost:   slog.LevelWarn,
	EventRunTooLong:  slog.LevelWarn,
	EventUnrecorded:  slog.LevelError,
	EventStoreError:  slog.LevelError,
	EventUnprotected: slog.LevelWarn,
	EventDropped:     slog.LevelError,
	EventPanic:       slog.LevelError,
	EventSuperseded:  slog.LevelWarn,
	EventContested:   slog.LevelWarn,
	EventNotApplied:  slog.LevelWarn,
	EventUndecided:   slog.LevelError,
	EventBlobError:   slog.LevelError,
}

// NewAuditLog returns an [Observer] that logs every transition as one structured record:
// the event as the message, and the attributes outcome, end, label, id (12 digits), scope
// (hashed), attempt, fence, elapsed, reason and error where they apply. It logs no key. A
// nil logger means the default logger at the time of the call to NewAuditLog.
func NewAuditLog(log *slog.Logger) Observer {
	if log == nil {
		log = slog.Default()
	}
	return ObserverFunc(func(ctx context.Context, e Event) {
		level := auditLevels[e.Kind]
		if !log.Enabled(ctx, level) {
			return
		}
		attrs := make([]slog.Attr, 0, 10)
		if e.Outcome != 0 {
			attrs = append(attrs, slog.String("outcome", e.Outcome.String()))
		}
		if e.End != 0 {
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
		if e.Reason != "" {
			attrs = append(attrs, slog.String("reason", e.Reason))
		}
		if e.Err != nil {
			attrs = append(attrs, slog.String("error", e.Err.Error()))
		}
		log.LogAttrs(ctx, level, "idempotency "+e.Kind.String(), attrs...)
	})
}
