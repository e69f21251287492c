package reprise

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"
)

// operatorLogPause is how long one message of an [operatorLog] is not repeated.
const operatorLogPause = 10 * time.Second

// operatorLog is the observer of an engine that has none: it logs what an operator must
// know to [slog.Default], each message at most once in ten seconds.
type operatorLog struct {
	mu   sync.Mutex
	next map[string]*logPause
}

// logPause is what became of one message.
type logPause struct {
	until   instant
	skipped int
}

func (*operatorLog) kinds() uint64 {
	return 1<<EventLapsed | 1<<EventUnrecorded | 1<<EventDropped | 1<<EventStoreError | 1<<EventRefused | 1<<EventPanic
}

// Observe implements [Observer].
func (l *operatorLog) Observe(ctx context.Context, e Event) {
	level := slog.LevelError
	var message string
	switch {
	case e.Kind == EventLapsed:
		level = slog.LevelWarn
		message = "reprise: a request was refused because the outcome of its last attempt is unknown; resolve its record"
	case e.Kind == EventUnrecorded:
		message = "reprise: a response left that is not recorded"
	case e.Kind == EventDropped:
		message = "reprise: a completion or release was given up; its claim lapses"
	case e.Kind == EventRefused && e.Reason != "internal-error":
		return // caused by the client, or reported as an EventStoreError before
	case e.Kind == EventRefused, e.Kind == EventPanic:
		message = "reprise: a function of the policy panicked"
	case errors.Is(e.Err, ErrMisconfigured):
		message = "reprise: the store is misconfigured"
	case errors.Is(e.Err, ErrCorrupt):
		message = "reprise: a record cannot be read"
	default:
		return
	}
	skipped, due := l.due(message)
	if !due {
		return
	}
	attrs := make([]slog.Attr, 0, 4)
	if e.Label != "" {
		attrs = append(attrs, slog.String("label", e.Label))
	}
	if e.ID != (ID{}) {
		attrs = append(attrs, slog.String("id", e.ID.Short()))
	}
	if e.Err != nil {
		attrs = append(attrs, slog.String("error", e.Err.Error()))
	}
	if skipped > 0 {
		attrs = append(attrs, slog.Int("skipped", skipped))
	}
	slog.Default().LogAttrs(ctx, level, message, attrs...)
}

// due reports whether a message is to be logged now, and how often it was not since the
// last time.
func (l *operatorLog) due(message string) (skipped int, due bool) {
	at := now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.next == nil {
		l.next = make(map[string]*logPause)
	}
	p := l.next[message]
	switch {
	case p == nil:
		l.next[message] = &logPause{until: at.add(operatorLogPause)}
		return 0, true
	case !at.reached(p.until):
		p.skipped++
		return 0, false
	}
	skipped = p.skipped
	*p = logPause{until: at.add(operatorLogPause)}
	return skipped, true
}
