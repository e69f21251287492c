package reprise

import (
	"context"
	"time"
)

// Observer is notified of every transition that an [Engine] makes or sees, from many
// goroutines at once. A panic in it is swallowed: observers cannot break a request.
//
// An event of a request is observed by the goroutine of the request, which waits for it:
// be quick. The context has the values of the request, such as its trace; do not keep it.
// Events that no request waits for (renewals, losses, and what the background does) come
// from a goroutine of their own, one after the other. Their context has the values that
// [Config].Detach copied. When an observer blocks, up to 4,096 of them wait and the
// others are dropped, and nothing else is delayed; see [Stats].
type Observer interface {
	Observe(ctx context.Context, e Event)
}

// ObserverFunc makes an [Observer] of a function.
type ObserverFunc func(ctx context.Context, e Event)

// Observe calls f.
func (f ObserverFunc) Observe(ctx context.Context, e Event) { f(ctx, e) }

// Observers joins several observers into one, called in order. A nil one is skipped, and
// one that panics does not keep the others from being called.
func Observers(list ...Observer) Observer {
	return ObserverFunc(func(ctx context.Context, e Event) {
		for _, o := range list {
			notify(ctx, o, e)
		}
	})
}

// notify calls one observer and swallows its panic.
func notify(ctx context.Context, o Observer, e Event) {
	if o == nil {
		return
	}
	defer func() { _ = recover() }()
	o.Observe(ctx, e)
}

// Event is one transition. It never holds a key, a scope, a body or a header field.
type Event struct {
	Kind    EventKind
	Label   string        // of the policy: see Operation.Label
	Reason  string        // of EventRefused: a short code
	ID      ID            // log [ID.Short] of it; zero where the operation is not known
	Scope   string        // the first 12 hexadecimal digits of the scope's SHA-256; empty where it is not known
	Attempt int           // the attempt's number; 0 where there is none
	Fence   uint64        // likewise
	Elapsed time.Duration // since the call to Begin
	Err     error         // of a failure; nil otherwise
}

// EventKind names a transition.
type EventKind uint8

// The transitions.
const (
	EventClaimed     EventKind = iota + 1 // a first attempt started
	EventTakeover                         // an attempt took a lapsed record over
	EventReplayed                         // answered from the record
	EventInProgress                       // refused: another attempt is running
	EventMismatch                         // refused: the key belongs to another request
	EventLapsed                           // refused: the outcome of the last attempt is unknown
	EventRenewed                          // a lease was renewed
	EventLeaseLost                        // an attempt lost its lease, or could not renew it in time
	EventRunTooLong                       // an attempt ran longer than Config.MaxRun
	EventCompleted                        // an answer was recorded
	EventReleased                         // a claim was forgotten
	EventUnrecorded                       // a response leaves that is not recorded; EventCompleted or EventDropped may follow
	EventStoreError                       // a call to the store failed
	EventUnprotected                      // an attempt started without a claim: see Operation.FailOpen
	EventDropped                          // a completion or release was given up; the claim lapses
	EventRefused                          // refused before Begin, for Event.Reason: see Engine.Report
	EventPanic                            // a function of the policy panicked beside the outcome of its request
)

var eventNames = [...]string{
	EventClaimed: "claimed", EventTakeover: "takeover", EventReplayed: "replayed", EventInProgress: "in-progress",
	EventMismatch: "mismatch", EventLapsed: "lapsed", EventRenewed: "renewed", EventLeaseLost: "lease-lost",
	EventRunTooLong: "run-too-long", EventCompleted: "completed", EventReleased: "released",
	EventUnrecorded: "unrecorded", EventStoreError: "store-error", EventUnprotected: "unprotected",
	EventDropped: "dropped", EventRefused: "refused", EventPanic: "panic",
}

// String returns the kind as it appears in logs.
func (k EventKind) String() string { return name(eventNames[:], int(k)) }

// outcomeEvents maps the answers of Begin that are not a claim to their events.
var outcomeEvents = [...]EventKind{
	InProgress: EventInProgress, Completed: EventReplayed, Mismatch: EventMismatch, Lapsed: EventLapsed,
}

// Report notifies the engine's observer of something that its caller saw, as the engine
// does: it is how the package protocol reports the requests that it refuses itself. Call
// it from the goroutine of the request.
func (e *Engine) Report(ctx context.Context, event Event) {
	if e.observing.wants(event.Kind) {
		e.observing.notify(ctx, event)
	}
}
