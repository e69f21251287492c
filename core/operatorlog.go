package reprise

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/reprise-go/reprise/core/store"
)

// operatorLogPause is how long one message of an [operatorLog] is not repeated.
const operatorLogPause = 10 * time.Second

// operatorLog logs the events of [Config].Log.
type operatorLog struct {
	log *slog.Logger // nil: slog.Default at the time of the event

	mu   sync.Mutex
	next map[string]*logPause
}

// logPause is the state of one message.
type logPause struct {
	until   instant
	skipped int
}

func (l *operatorLog) logger() *slog.Logger {
	if l.log == nil {
		return slog.Default()
	}
	return l.log
}

// report logs an event that an operator must know, unless its message was logged a moment
// ago; see [EventKind].Always. A panic of the logger's handler is swallowed, as that of
// an observer is.
func (l *operatorLog) report(ctx context.Context, e *Event) {
	defer func() { _ = recover() }()
	level, message := notice(e)
	log := l.logger()
	if message == "" || !log.Enabled(ctx, level) {
		return
	}
	skipped := 0
	if e.Kind == nil || !e.Kind.Always {
		var due bool
		if skipped, due = l.due(message); !due {
			return
		}
	}
	attrs := make([]slog.Attr, 0, 8)
	if e.Label != "" {
		attrs = append(attrs, slog.String("label", e.Label))
	}
	if e.ID != (store.ID{}) {
		attrs = append(attrs, slog.String("id", e.ID.Short()))
	}
	if e.State != 0 {
		attrs = append(attrs, slog.String("state", e.State.String()), slog.Bool("forgotten", e.Forgotten), slog.String("operator", e.Operator))
	}
	if e.Reason != "" {
		attrs = append(attrs, slog.String("reason", e.Reason))
	}
	if e.Err != nil {
		attrs = append(attrs, slog.String("error", e.Err.Error()))
	}
	if skipped > 0 {
		attrs = append(attrs, slog.Int("skipped", skipped))
	}
	log.LogAttrs(ctx, level, message, attrs...)
}

// due reports whether to log a message now, and how often it was skipped since the last
// time.
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
