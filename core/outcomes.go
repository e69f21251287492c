package reprise

import (
	"github.com/reprise-go/reprise/core/internal/text"
	"github.com/reprise-go/reprise/core/store"
)

// Expired is an answer of [Engine.Begin], and of no store: the operation is completed,
// and the retention of its answer has ended. See [Operation.Horizon].
const Expired = store.Expired

// RequestOutcome says what became of a request with a key: whether its handler ran, and
// if not, why. Each request has exactly one, which the engine counts under the label of
// its policy (see [Stats]), and which exactly one [Event] carries.
//
// What counts as a request is a call to [Engine.Begin], and a request that the package
// protocol refuses before it calls Begin. A caller that leaves while it waits for another
// attempt counts as RequestInProgress: that is the answer it would have got.
type RequestOutcome uint8

// The outcomes of a request. The zero value is not one of them.
const (
	RequestClaimed      RequestOutcome = iota + 1 // an attempt started: the handler runs
	RequestReplayed                               // answered from the record
	RequestInProgress                             // refused: another attempt is running
	RequestMismatch                               // refused: the key belongs to another request
	RequestLapsed                                 // refused: the outcome of the last attempt is unknown
	RequestUnprotected                            // an attempt started without a claim: see Operation.FailOpen
	RequestUnavailable                            // refused: the store gave no definite answer, or the engine is closed
	RequestCorrupt                                // refused: the record is unreadable
	RequestKeyMissing                             // refused: the policy requires a key
	RequestKeyInvalid                             // refused: the key is malformed
	RequestScopeMissing                           // refused: the caller is unknown
	RequestTooLarge                               // refused: the body is over the limit
	RequestInvalid                                // refused: the request could not be read or understood
	RequestFailed                                 // refused: a function of the policy failed
	RequestExpired                                // refused: the retention of the answer has ended, and its horizon has not
)

// String returns the outcome as it appears in logs and metrics.
func (o RequestOutcome) String() string { return text.Name(requestNames[:], int(o)) }

var requestNames = [...]string{
	RequestClaimed: "claimed", RequestReplayed: "replayed", RequestInProgress: "in-progress",
	RequestMismatch: "mismatch", RequestLapsed: "lapsed", RequestUnprotected: "unprotected",
	RequestUnavailable: "unavailable", RequestCorrupt: "corrupt",
	RequestKeyMissing: "key-missing", RequestKeyInvalid: "key-invalid", RequestScopeMissing: "scope-missing",
	RequestTooLarge: "too-large", RequestInvalid: "request-invalid", RequestFailed: "internal-error",
	RequestExpired: "expired",
}

// RequestOutcomes returns every outcome of a request.
func RequestOutcomes() []RequestOutcome { return enumerate[RequestOutcome](len(requestNames)) }

// AttemptEnd says how an attempt ended. Each attempt that Begin returned and that its
// caller ended has exactly one, which the engine counts under the label of its policy
// (see [Stats]), and which exactly one [Event] carries.
//
// An attempt whose completion goes on in the background has not ended: its response left
// unrecorded (EventUnrecorded), and it ends as EndRecorded or EndDropped.
type AttemptEnd uint8

// The ends of an attempt. The zero value is not one of them.
const (
	EndRecorded   AttemptEnd = iota + 1 // its answer is kept
	EndReleased                         // its claim is forgotten: the next request runs
	EndUnrecorded                       // its response left, and no record will have it: the claim lapses, or there was none
	EndSuperseded                       // another attempt completed first, and its answer was sent
	EndContested                        // another attempt runs, or may have run: 409
	EndNotApplied                       // Atomic: rolled back, a retry runs again
	EndUndecided                        // Atomic: whether it was committed is unknown
	EndDropped                          // its completion or release was given up: the claim lapses
)

// String returns the end as it appears in logs and metrics.
func (e AttemptEnd) String() string { return text.Name(endNames[:], int(e)) }

var endNames = [...]string{
	EndRecorded: "recorded", EndReleased: "released", EndUnrecorded: "unrecorded", EndSuperseded: "superseded",
	EndContested: "contested", EndNotApplied: "not-applied", EndUndecided: "undecided", EndDropped: "dropped",
}

// AttemptEnds returns every end of an attempt.
func AttemptEnds() []AttemptEnd { return enumerate[AttemptEnd](len(endNames)) }

func enumerate[T ~uint8](n int) []T {
	list := make([]T, 0, n-1)
	for i := 1; i < n; i++ {
		list = append(list, T(i))
	}
	return list
}

// The tables below say what is counted for what the engine decided, and which event
// carries it. Nothing else does.

// claimOutcomes maps the answers to a claim to the outcomes of their requests.
var claimOutcomes = [...]RequestOutcome{
	store.Claimed: RequestClaimed, store.InProgress: RequestInProgress, store.Completed: RequestReplayed,
	store.Mismatch: RequestMismatch, store.Lapsed: RequestLapsed, Expired: RequestExpired,
}

// requestEvents maps the outcomes of requests to their events. A claim that is not the
// first of its operation is EventTakeover instead of EventClaimed.
var requestEvents = [...]EventKind{
	RequestClaimed: EventClaimed, RequestReplayed: EventReplayed, RequestInProgress: EventInProgress,
	RequestMismatch: EventMismatch, RequestLapsed: EventLapsed, RequestUnprotected: EventUnprotected,
	RequestUnavailable: EventRefused, RequestCorrupt: EventRefused, RequestKeyMissing: EventRefused,
	RequestKeyInvalid: EventRefused, RequestScopeMissing: EventRefused, RequestTooLarge: EventRefused,
	RequestInvalid: EventRefused, RequestFailed: EventRefused, RequestExpired: EventExpired,
}

// completeEnds maps what became of completions to the ends of their attempts.
var completeEnds = [...]AttemptEnd{
	Recorded: EndRecorded, Unrecorded: EndUnrecorded, Superseded: EndSuperseded, Contested: EndContested,
	RolledBack: EndNotApplied, Undecided: EndUndecided,
}

// endEvents maps the ends of attempts to their events.
var endEvents = [...]EventKind{
	EndRecorded: EventCompleted, EndReleased: EventReleased, EndUnrecorded: EventUnrecorded,
	EndSuperseded: EventSuperseded, EndContested: EventContested, EndNotApplied: EventNotApplied,
	EndUndecided: EventUndecided, EndDropped: EventDropped,
}
