package reprise

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/reprise-go/reprise/core/internal/bounds"
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

// Event is one transition. It never holds a key, a scope or the content of a request.
type Event struct {
	// Exactly one of these is set, and [Event.Name] is its name.
	Outcome Outcome
	End     AttemptEnd
	Kind    *EventKind

	// Counted is true in the one event with the Outcome that ends a request, and in the one
	// event with the End of an attempt. An observer that counts only these gets the counts
	// of [Engine.Stats]. The others with an Outcome or an End are:
	//
	//	Unprotected    a streaming call with a key passed through
	//	EndUnrecorded  a result was sent before its record, and the background continues:
	//	               EndRecorded or EndDropped follows, and is counted
	//	EndUnknown     a handler did not return within a lease after Config.MaxRun, and still
	//	               runs: its record says so
	//	EndReleased    a claim that no caller got was released
	//	EndDropped     the release of such a claim was given up
	Counted bool

	Label   string   // of the policy: see Operation.Label
	ID      store.ID // log [store.ID.Short] of it; zero where the operation is not known
	Scope   string   // the first 12 hexadecimal digits of the scope's SHA-256; empty where it is not known
	Attempt int      // the attempt's number; 0 where there is none
	Fence   uint64   // likewise
	Err     error    // of a failure; nil otherwise

	Elapsed time.Duration // since the call to Begin

	// The counted event of a request has the parts of the call to Begin: how long it
	// waited for another attempt to end, and how long it took besides, which is the time
	// of its claim.
	ClaimTime, WaitTime time.Duration

	// The counted event of an attempt has its parts: how long its caller had it, which is
	// the time of the handler, and how long its completion or release took, also in the
	// background.
	RunTime, CompleteTime time.Duration

	Annotation string // of Replayed: the annotation of the result; see Result.Read
	Reason     string // of EventResolved: the operator's reason; of EndUnknown: the handler's, or that of Config.MaxRun; of another Kind: the likely mistake. With another End no record has it

	// State, of EventResolved, is the one in which the operator found the record, and
	// Forgotten says that it was forgotten, so that its next request runs. Otherwise it got
	// a result. Operator is who resolved it: [Reconcile] is "reconciler".
	State     store.RecordState
	Forgotten bool
	Operator  string

	Kinds []*EventKind // of EventDeclared: those that the policy may report besides the engine's
}

// EventKind is a transition that ends neither a request nor an attempt. The engine has
// those below. A package above it may define more, and reports them by [Engine.Report].
// Kinds are compared by their addresses, as errors are.
type EventKind struct {
	Name    string     // in logs, metrics and traces
	Level   slog.Level // in Config.Log, and in the log of [NewAuditLog]
	Message string     // in Config.Log; empty: operators need not know
	Always  bool       // the message is logged each time, and not at most every ten seconds
}

// The kinds of the engine.
var (
	// EventRenewed says that a lease was renewed.
	EventRenewed = &EventKind{Name: "renewed", Level: slog.LevelDebug}

	// EventLeaseLost says that an attempt lost its lease, or could not renew it in time.
	EventLeaseLost = &EventKind{
		Name: "lease-lost", Level: slog.LevelWarn, Message: "reprise: an attempt lost its lease; another one may run beside it",
	}

	// EventRunTooLong says that an attempt ran longer than Config.MaxRun.
	EventRunTooLong = &EventKind{Name: "run-too-long", Level: slog.LevelWarn, Message: "reprise: a handler ran longer than Config.MaxRun"}

	// EventStoreError says that a call to the store failed. The error decides the message.
	EventStoreError = &EventKind{Name: "store-error", Level: slog.LevelError}

	// EventResolved says that an operator resolved a record: see [Engine.Report].
	EventResolved = &EventKind{Name: "resolved", Level: slog.LevelInfo, Message: "reprise: an operator resolved a record", Always: true}

	// EventDeclared says that there is a policy, which has served no request yet: see
	// [Engine.Declare].
	EventDeclared = &EventKind{Name: "declared", Level: slog.LevelDebug}
)

// Name returns the name of the event in logs, metrics and traces. A claim that took over
// a lapsed record is a "takeover", an attempt that ended as EndRecorded is "completed",
// and a request that got no result because of itself, its policy or the store is
// "refused". Every other event has the name of its Outcome, End or Kind.
func (e Event) Name() string {
	switch {
	case e.Kind != nil:
		return e.Kind.Name
	case e.End == EndRecorded:
		return "completed"
	case e.End != 0:
		return e.End.String()
	case e.isTakeover():
		return "takeover"
	case e.Outcome > Unprotected:
		return "refused"
	default:
		return e.Outcome.String()
	}
}

func (e Event) isTakeover() bool { return e.Outcome == Claimed && e.Attempt > 1 }

// Declare says that there is a policy with this label, before its first request, which
// may report these kinds of events besides those of the engine. [Stats] then has its
// counts, which are zero, and the observer gets EventDeclared, so that it can make a
// series at zero for each outcome and kind. Metrics that begin with the first lapsed
// request have not increased, and no alert would see it.
//
// The package protocol declares its guards. Call it for the labels of other operations,
// once for each, when the program starts. An invalid label is not declared.
func (e *Engine) Declare(label string, kinds ...*EventKind) {
	if bounds.Label("label", label) != nil {
		return
	}
	e.tallies.of(label)
	if event := (Event{Kind: EventDeclared, Label: label, Kinds: kinds}); e.observing.wants(&event) {
		e.observing.notify(e.base, event)
	}
}

// Report notifies the engine's observer of an event that its caller saw or caused: a
// panic beside a request, or the resolution of a record by an operator. It is not
// counted: see [Engine.Refuse].
func (e *Engine) Report(ctx context.Context, event Event) {
	event.Counted = false
	if e.observing.wants(&event) {
		e.observing.notify(ctx, event)
	}
}

const (
	maxQueuedEvents = 4096
	slowObservation = 100 * time.Millisecond
)

// observing calls the observer of an engine, and its log for operators. The goroutine of
// a request reports its events at once. An event that no request waits for, such as a
// renewal, goes through a bounded queue with a separate goroutine, so that an observer
// that blocks delays only other events.
type observing struct {
	observer Observer // nil: none
	log      operatorLog

	slow    atomic.Uint64
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

// notify calls the log and the observer, and counts the call if it was slow.
func (o *observing) notify(ctx context.Context, e Event) {
	start := now().mono
	o.log.report(ctx, &e)
	notify(ctx, o.observer, e)
	if now().mono-start > slowObservation {
		o.slow.Add(1)
	}
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
	if idle == nil {
		return
	}
	select {
	case <-idle:
	case <-ctx.Done():
	}
}

func (o *observing) stats(s *Stats) {
	o.mu.Lock()
	s.EventsQueued = len(o.events)
	o.mu.Unlock()
	s.EventsDropped, s.EventsSlow = o.dropped.Load(), o.slow.Load()
}
