package reprise

import (
	"log/slog"
	"time"

	"github.com/reprise-go/reprise/core/store"
)

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
	//	EndNotApplied  the claim of a transaction that was rolled back is released in the
	//	               background: EndReleased or EndDropped follows, and is counted
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
	// a result. Operator is who resolved it: [Engine.Reconcile] is "reconciler".
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

	// EventResolved says that an operator, or a reconciler, resolved a record.
	EventResolved = &EventKind{Name: "resolved", Level: slog.LevelInfo, Message: "reprise: the record of an operation was resolved", Always: true}

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
