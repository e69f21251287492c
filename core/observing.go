package reprise

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/reprise-go/reprise/core/store"
)

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

func (e Event) isTakeover() bool { return e.Outcome == Claimed && e.Attempt > 1 }

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
		return slog.LevelWarn, "reprise: another attempt or an operator took an operation over; this attempt's result does not count"
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
		return slog.LevelWarn, "reprise: an attempt took over a lapsed record; the one before it may have had effects outside of the store's transaction"
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

const (
	// mostLabels is how many labels are counted apart.
	mostLabels = 1000

	// otherLabels is the label under which the others are counted.
	otherLabels = "(others)"
)

// tally counts the outcomes and ends of one label.
type tally struct {
	outcomes [len(outcomeNames)]atomic.Uint64
	ends     [len(endNames)]atomic.Uint64
}

// tallies are those of an engine. Labels are few and stay, so finding the tally of a
// label that was seen before takes no lock: the map is never written, but replaced.
type tallies struct {
	known atomic.Pointer[map[string]*tally]
	mu    sync.Mutex // of those who replace it
}

// of returns the tally of a label, which is valid.
func (ts *tallies) of(label string) *tally {
	if known := ts.known.Load(); known != nil {
		if t := (*known)[label]; t != nil {
			return t
		}
	}
	return ts.add(label)
}

func (ts *tallies) add(label string) *tally {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	var known map[string]*tally
	if old := ts.known.Load(); old != nil {
		known = *old
	}
	if len(known) >= mostLabels && known[label] == nil {
		label = otherLabels
	}
	if t := known[label]; t != nil {
		return t
	}
	more := make(map[string]*tally, len(known)+1)
	maps.Copy(more, known)
	t := new(tally)
	more[strings.Clone(label)] = t
	ts.known.Store(&more)
	return t
}

// Totals counts the requests and attempts of one label, or of all. Both maps have every
// outcome and every end.
type Totals struct {
	Outcomes map[Outcome]uint64    // of requests
	Ends     map[AttemptEnd]uint64 // of attempts

	// Running is how many attempts have begun and not ended: those whose handlers run, and
	// those that the background still completes or releases. It equals Outcomes[Claimed] and
	// Outcomes[Unprotected] less all Ends.
	Running int
}

// add adds the counts of t.
func (s *Totals) add(t *tally) {
	var begun, ended uint64
	for _, e := range AttemptEnds() { // the ends first: an attempt that has ended by now has begun before
		n := t.ends[e].Load()
		s.Ends[e] += n
		ended += n
	}
	for _, o := range Outcomes() {
		n := t.outcomes[o].Load()
		s.Outcomes[o] += n
		if o == Claimed || o == Unprotected {
			begun += n
		}
	}
	s.Running += int(begun - ended)
}

func newTotals() Totals {
	return Totals{
		Outcomes: make(map[Outcome]uint64, len(outcomeNames)-1), Ends: make(map[AttemptEnd]uint64, len(endNames)-1),
	}
}

// totals returns the counts, for all labels and by label.
func (ts *tallies) totals() (all Totals, byLabel map[string]Totals) {
	all, byLabel = newTotals(), make(map[string]Totals)
	all.add(new(tally))
	known := ts.known.Load()
	if known == nil {
		return all, byLabel
	}
	for label, t := range *known {
		one := newTotals()
		one.add(t)
		byLabel[label] = one
		for o, n := range one.Outcomes {
			all.Outcomes[o] += n
		}
		for e, n := range one.Ends {
			all.Ends[e] += n
		}
		all.Running += one.Running
	}
	return all, byLabel
}
