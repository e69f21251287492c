package reprise

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
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

func notifyAll(ctx context.Context, list []Observer, e Event) {
	called := 0
	defer func() {
		if called < len(list) { // the last one ended the goroutine
			notifyAll(ctx, list[called:], e)
		}
	}()
	for called < len(list) {
		called++
		notify(ctx, list[called-1], e)
	}
}

// notify calls one observer and swallows its panic.
func notify(ctx context.Context, o Observer, e Event) {
	if o == nil {
		return
	}
	defer func() { _ = recover() }()
	o.Observe(ctx, e)
}

const maxQueuedEvents = 4096

// observing calls the observer of an engine, and its log for operators. The goroutine of
// a request reports its events at once. An event that no request waits for, such as a
// renewal, goes through a bounded queue with a separate goroutine, so that an observer
// that blocks delays only other events.
type observing struct {
	observer Observer // nil: none
	log      operatorLog

	dropped atomic.Uint64

	mu     sync.Mutex
	events []queuedEvent
	idle   chan struct{} // not nil while the goroutine runs; closed when it ends
}

type queuedEvent struct {
	ctx   context.Context
	event Event
}

// wants reports whether the observer or the log wants an event, of which the caller has
// set the kind. Few events concern the log.
func (o *observing) wants(e *Event) bool {
	if o.observer != nil {
		return true
	}
	_, message := notice(e)
	return message != ""
}

// notify calls the log and the observer.
func (o *observing) notify(ctx context.Context, e Event) {
	o.log.report(ctx, &e)
	notify(ctx, o.observer, e)
}

// queue reports an event from a separate goroutine, or drops it when the queue is full.
func (o *observing) queue(ctx context.Context, e Event) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.events) >= maxQueuedEvents {
		o.dropped.Add(1)
		return
	}
	o.events = append(o.events, queuedEvent{ctx, e})
	if o.idle == nil {
		o.idle = make(chan struct{})
		go o.serve(o.idle)
	}
}

// serve passes on queued events until there are none. When an observer ends its
// goroutine, another one goes on.
func (o *observing) serve(idle chan struct{}) {
	drained := false
	defer func() {
		if drained {
			close(idle)
		} else {
			go o.serve(idle)
		}
	}()
	for {
		o.mu.Lock()
		if len(o.events) == 0 {
			o.events, o.idle = nil, nil
			o.mu.Unlock()
			drained = true
			return
		}
		next := o.events[0]
		o.events[0] = queuedEvent{}
		o.events = o.events[1:]
		o.mu.Unlock()
		o.notify(next.ctx, next.event)
	}
}

// wait returns when the events of the queue have been passed on, or when ctx ends.
func (o *observing) wait(ctx context.Context) {
	o.mu.Lock()
	idle := o.idle
	o.mu.Unlock()
	if idle != nil {
		await(ctx, idle)
	}
}

// errUncounted marks the error of a count.
var errUncounted = errors.New("count of stuck records")

// Observer is notified of every transition that an [Engine] makes or sees, from many
// goroutines at once. A panic in it is swallowed: observers cannot break a request.
//
// An event of a request is observed by the goroutine of the request, which waits for it:
// be quick. The context has the values of the request, such as its trace; do not keep it.
// Events that no request waits for (renewals, losses, and the work in the background)
// come from a separate goroutine, one after the other. Their context has the values that
// [Config].Detach copied. When an observer blocks, up to 4,096 of them wait and the
// others are dropped, without further delays; see [Stats].
type Observer interface {
	Observe(ctx context.Context, e Event)
}

// ObserverFunc makes an [Observer] of a function.
type ObserverFunc func(ctx context.Context, e Event)

// Observe calls f.
func (f ObserverFunc) Observe(ctx context.Context, e Event) { f(ctx, e) }

// Observers joins several observers into one, called in order. A nil one is skipped, and
// one that panics, or ends its goroutine, does not keep the others from being called.
// Without any it is silent.
func Observers(list ...Observer) Observer {
	return ObserverFunc(func(ctx context.Context, e Event) { notifyAll(ctx, list, e) })
}
