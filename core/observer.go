package reprise

import (
	"context"
	"time"

	"github.com/reprise-go/reprise/core/internal/text"
	"github.com/reprise-go/reprise/core/store"
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

// Silent is an [Observer] that does nothing, for an engine that should not log.
var Silent Observer = ObserverFunc(func(context.Context, Event) {})

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
	Kind EventKind

	// Outcome and End are not zero in the one event that ends the call to Begin, and in
	// the one event that ends the attempt. An observer that counts these, and nothing
	// else, counts what [Engine.Stats] has.
	Outcome RequestOutcome
	End     AttemptEnd

	Label   string   // of the policy: see Operation.Label
	ID      store.ID // log [store.ID.Short] of it; zero where the operation is not known
	Scope   string   // the first 12 hexadecimal digits of the scope's SHA-256; empty where it is not known
	Attempt int      // the attempt's number; 0 where there is none
	Fence   uint64   // likewise
	Err     error    // of a failure; nil otherwise

	Elapsed time.Duration // since the call to Begin

	// An event with an Outcome has the parts of the call to Begin: how long it waited for
	// another attempt to end, and how long it took besides, which is the time of its
	// claim.
	ClaimTime, WaitTime time.Duration

	// An event with an End has the parts of the attempt: how long its caller had it, which
	// is the time of the handler, and how long its completion or release took, also in the
	// background.
	RunTime, CompleteTime time.Duration

	Annotation string // of EventReplayed: what was kept beside the answer; see protocol.Config.Annotate
	Reason     string // of EventResolved: what the operator wrote
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
	EventUnrecorded                       // a response leaves that is not recorded; without an End, EventCompleted or EventDropped follows
	EventStoreError                       // a call to the store failed
	EventUnprotected                      // an attempt started without a claim: see Operation.FailOpen; without an Outcome, a stream came with a key
	EventDropped                          // a completion or release was given up; the claim lapses
	EventRefused                          // refused, for Event.Outcome
	EventPanic                            // a function of the policy panicked beside the outcome of its request
	EventSuperseded                       // an attempt lost its lease, and another one completed first: its answer was sent
	EventContested                        // an attempt lost its lease to another one that runs, or may have run
	EventNotApplied                       // an Atomic attempt was rolled back
	EventUndecided                        // whether an Atomic attempt was committed is unknown
	EventResolved                         // an operator resolved a record: see Engine.Report
	EventBlobError                        // a response body could not be written to, or read from, the blob store: see protocol.Offload
	EventExpired                          // refused: the retention of the answer has ended, and its horizon has not
)

var eventNames = [...]string{
	EventClaimed: "claimed", EventTakeover: "takeover", EventReplayed: "replayed", EventInProgress: "in-progress",
	EventMismatch: "mismatch", EventLapsed: "lapsed", EventRenewed: "renewed", EventLeaseLost: "lease-lost",
	EventRunTooLong: "run-too-long", EventCompleted: "completed", EventReleased: "released",
	EventUnrecorded: "unrecorded", EventStoreError: "store-error", EventUnprotected: "unprotected",
	EventDropped: "dropped", EventRefused: "refused", EventPanic: "panic", EventSuperseded: "superseded",
	EventContested: "contested", EventNotApplied: "not-applied", EventUndecided: "undecided", EventResolved: "resolved",
	EventBlobError: "blob-error", EventExpired: "expired",
}

// String returns the kind as it appears in logs.
func (k EventKind) String() string { return text.Name(eventNames[:], int(k)) }

// Report notifies the engine's observer of something that its caller saw or did, as the
// engine does: a panic beside a request, or the resolution of a record by an operator. It
// counts nothing: see [Engine.Refuse].
func (e *Engine) Report(ctx context.Context, event Event) {
	if e.observing.wants(event.Kind) {
		e.observing.notify(ctx, event)
	}
}
