package reprise

import (
	"context"
	"time"
)

// Observer is told of every transition that an [Engine] makes or sees. Observe is called in the request's way, from many
// goroutines at once: it must be quick and must not block. A panic in it is swallowed: observers cannot break a request.
// The context carries the values of the request, such as its trace; it may have ended, and is not to be kept.
type Observer interface {
	Observe(ctx context.Context, e Event)
}

// ObserverFunc makes an [Observer] of a function.
type ObserverFunc func(ctx context.Context, e Event)

// Observe calls f.
func (f ObserverFunc) Observe(ctx context.Context, e Event) { f(ctx, e) }

// Observers joins several observers into one, called in order. A nil one is passed over, and one that panics keeps nothing from the
// others.
func Observers(list ...Observer) Observer {
	return ObserverFunc(func(ctx context.Context, e Event) {
		for _, o := range list {
			notify(ctx, o, e)
		}
	})
}

// notify tells one observer, and swallows its panic.
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
	ID      ID            // log [ID.Short] of it
	Scope   string        // the first 12 hexadecimal digits of the scope's SHA-256
	Attempt int           // of the attempt concerned; 0 where there is none
	Fence   uint64        // likewise
	Elapsed time.Duration // since the call to Begin
	Err     error         // of a failure; nil otherwise
}

// EventKind names a transition.
type EventKind uint8

// The transitions.
const (
	EventClaimed    EventKind = iota + 1 // a first attempt started
	EventTakeover                        // an attempt took a lapsed record over
	EventReplayed                        // answered from the record
	EventInProgress                      // refused: another attempt is running
	EventMismatch                        // refused: the key belongs to another request
	EventLapsed                          // refused: the outcome of the last attempt is unknown
	EventRenewed                         // a lease was renewed
	EventLeaseLost                       // an attempt lost its lease, or could not renew it in time
	EventRunTooLong                      // an attempt ran longer than Config.MaxRun
	EventCompleted                       // an answer was recorded
	EventReleased                        // a claim was forgotten
	EventUnrecorded                      // a response leaves that is not recorded; EventCompleted follows if it comes to that later
	EventStoreError                      // a call to the store failed
)

var eventNames = [...]string{
	EventClaimed: "claimed", EventTakeover: "takeover", EventReplayed: "replayed", EventInProgress: "in-progress",
	EventMismatch: "mismatch", EventLapsed: "lapsed", EventRenewed: "renewed", EventLeaseLost: "lease-lost",
	EventRunTooLong: "run-too-long", EventCompleted: "completed", EventReleased: "released",
	EventUnrecorded: "unrecorded", EventStoreError: "store-error",
}

// String returns the kind as it appears in logs.
func (k EventKind) String() string { return name(eventNames[:], int(k)) }

// outcomeEvents says which event tells of an answer that is not a claim.
var outcomeEvents = [...]EventKind{
	InProgress: EventInProgress, Completed: EventReplayed, Mismatch: EventMismatch, Lapsed: EventLapsed,
}
