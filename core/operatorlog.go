package reprise

import (
	"context"
	"errors"
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

// notice is the table of important events. The message is empty for successes, for
// mistakes of clients, and for events that another event of the same request covers.
func notice(e *Event) (slog.Level, string) {
	switch {
	case e.Kind == EventStoreError:
		return e.Kind.Level, storeNotice(e.Err)
	case e.Kind != nil:
		return e.Kind.Level, e.Kind.Message
	}
	switch e.End {
	case EndSuperseded, EndContested:
		return slog.LevelWarn, "reprise: two attempts of one operation ran; the later one's result counts"
	case EndUnrecorded:
		return slog.LevelError, "reprise: a result was sent that is not recorded"
	case EndNotApplied:
		if e.Reason != "" {
			return slog.LevelError, "reprise: the outcome of an operation is unknown, and no record says so: a retry runs it again"
		}
	case EndUndecided:
		return slog.LevelError, "reprise: whether a transaction was committed is unknown"
	case EndDropped:
		return slog.LevelError, "reprise: the end of an attempt was given up; its claim lapses"
	case EndUnknown:
		return slog.LevelWarn, "reprise: the outcome of an operation is unknown; resolve its record"
	default: // its outcome decides
	}
	switch {
	case e.isTakeover():
		return slog.LevelWarn, "reprise: an attempt took over a lapsed record; the attempt before it may have had effects"
	case e.Outcome == Lapsed:
		return slog.LevelWarn, "reprise: a request was refused because the outcome of its last attempt is unknown; resolve its record"
	case e.Outcome == Unprotected && e.Counted:
		return slog.LevelWarn, "reprise: the store is unavailable, and operations run without a claim"
	case e.Outcome == Unprotected:
		return slog.LevelWarn, "reprise: a call that cannot be protected came with a key"
	case e.Outcome == ScopeMissing && errors.Is(e.Err, store.ErrInvalid):
		return slog.LevelWarn, "reprise: a request was refused because its scope is empty or invalid"
	case e.Outcome == ScopeMissing:
		return slog.LevelWarn, "reprise: a request was refused because its scope function failed"
	case e.Outcome == Failed:
		return slog.LevelError, "reprise: a request was refused because of a mistake in its policy"
	case e.Outcome == Unavailable && !errors.Is(e.Err, store.ErrClosed) && storeNotice(e.Err) == "": // reported as an EventStoreError before
		return slog.LevelError, "reprise: a request was refused because the store, or the scope function, gave no definite result"
	default:
		return 0, ""
	}
}

// storeNotice describes the problem of a store. An unreachable one may be back at the
// next try; the request or attempt that fails is reported.
func storeNotice(err error) string {
	switch {
	case errors.Is(err, store.ErrMisconfigured):
		return "reprise: the store is misconfigured"
	case errors.Is(err, store.ErrCorrupt):
		return "reprise: a record cannot be read"
	case errors.Is(err, store.ErrFull):
		return "reprise: the store is full"
	case errors.Is(err, errUncounted):
		return "reprise: the stuck records could not be counted"
	default:
		return ""
	}
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
