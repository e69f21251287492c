package reprise

import (
	"context"
	"time"

	"github.com/reprise-go/reprise/core/internal/bounds"
	"github.com/reprise-go/reprise/core/internal/text"
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

// Event is one transition. It never holds a key, a scope, a body or a header field.
type Event struct {
	// Exactly one of these is set, and [Event.Name] is its name.
	Outcome Outcome
	End     AttemptEnd
	Kind    EventKind

	// Counted is true in the one event with the Outcome that ends a request, and in the one
	// event with the End of an attempt. An observer that counts only these gets the counts
	// of [Engine.Stats]. The others with an Outcome or an End are:
	//
	//	Unprotected    a streaming call with a key passed through
	//	EndUnrecorded  a response left before its record, and the background continues:
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

	Annotation string // of Replayed: the annotation of the response; see protocol.Keeping.Annotate
	Reason     string // of EventResolved: the operator's reason; of EndUnknown: the handler's, or that of Config.MaxRun; of EventBodyConsumed and EventBodyOmitted. With another End no record has it

	// State, of EventResolved, is the one in which the operator found the record, and
	// Forgotten says that it was forgotten, so that its next request runs. Otherwise it got
	// a result. Operator is who resolved it: [Reconcile] is "reconciler".
	State     store.RecordState
	Forgotten bool
	Operator  string
}

// EventKind names a transition that ends neither a request nor an attempt.
type EventKind uint8

// The kinds. The zero value is not one of them.
const (
	EventRenewed      EventKind = iota + 1 // a lease was renewed
	EventLeaseLost                         // an attempt lost its lease, or could not renew it in time
	EventRunTooLong                        // an attempt ran longer than Config.MaxRun
	EventStoreError                        // a call to the store failed
	EventPanic                             // a function of the policy panicked beside the outcome of its request
	EventResolved                          // an operator resolved a record: see Engine.Report
	EventBlobError                         // a response body could not be written to, or read from, the blob store: see protocol.Offloading
	EventDescription                       // the description of a request has its key in it, and is not kept: see protocol.Config.Describe
	EventReported                          // an error stands beside a complete response that is no failure: see protocol.Ending
	EventBodyConsumed                      // a layer outside consumed the body of a request, which was refused: once for each policy, with the likely mistake as the Reason
	EventBodyOmitted                       // a response body was not kept, because it is too large: once for each policy, with the limit to raise as the Reason
	EventDeclared                          // a policy exists, which has served no request yet: see Engine.Declare
)

// String returns the kind as it appears in logs.
func (k EventKind) String() string { return text.Name(kindNames[:], int(k)) }

var kindNames = [...]string{
	EventRenewed: "renewed", EventLeaseLost: "lease-lost", EventRunTooLong: "run-too-long", EventStoreError: "store-error",
	EventPanic: "panic", EventResolved: "resolved", EventBlobError: "blob-error", EventDescription: "description-withheld",
	EventReported: "error-reported", EventBodyConsumed: "body-consumed", EventBodyOmitted: "body-omitted",
	EventDeclared: "declared",
}

// Name returns the name of the event in logs, metrics and traces. A claim that took over
// a lapsed record is a "takeover", an attempt that ended as EndRecorded is "completed",
// and a request that got no result because of itself, its policy or the store is
// "refused". Every other event has the name of its Outcome, End or Kind.
func (e Event) Name() string {
	switch {
	case e.Kind != 0:
		return e.Kind.String()
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

// Declare says that there is a policy with this label, before its first request: [Stats]
// then has its counts, which are zero, and the observer gets EventDeclared, so that it
// can make a series at zero for each outcome. Metrics that begin with the first lapsed
// request have not increased, and no alert would see it.
//
// The package protocol declares its guards. Call it for the labels of other operations,
// once for each, when the program starts. An invalid label is not declared.
func (e *Engine) Declare(label string) {
	if bounds.Label("label", label) != nil {
		return
	}
	e.tallies.of(label)
	if event := (Event{Kind: EventDeclared, Label: label}); e.observing.wants(&event) {
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
