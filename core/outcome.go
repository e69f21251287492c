package reprise

import (
	"github.com/reprise-go/reprise/core/internal/text"
	"github.com/reprise-go/reprise/core/store"
)

// Outcome is the outcome of a request with a key: whether its handler ran, and if not,
// why. Each request has exactly one, which the engine counts under the label of its
// policy (see [Stats]), and which exactly one counted [Event] carries.
//
// A request is a call to [Engine.Begin], or one that its caller refuses before it calls
// Begin, which [Engine.Refuse] counts. A caller that leaves while it waits for another
// attempt counts as InProgress: that is the result it would have got.
type Outcome uint8

// The outcomes of a request. The zero value is not one of them. Those that a store
// returns have the numbers of [store.Outcome].
const (
	Claimed    = Outcome(store.Claimed)    // an attempt started: the handler runs
	InProgress = Outcome(store.InProgress) // refused: another attempt is running
	Replayed   = Outcome(store.Completed)  // answered from the record
	Mismatch   = Outcome(store.Mismatch)   // refused: the key belongs to another request
	Lapsed     = Outcome(store.Lapsed)     // refused: the outcome of the last attempt is unknown
	Expired    = Outcome(store.Expired)    // refused: the retention of the result has ended, and its horizon has not
)

// The outcomes that no store answers.
const (
	Unprotected    Outcome = iota + 1 + Expired // an attempt started without a claim: see Operation.FailOpen
	Unavailable                                 // refused: the store gave no definite result, or the engine is closed
	Corrupt                                     // refused: the record is unreadable
	KeyMissing                                  // refused: there is no key, and one is needed
	KeyInvalid                                  // refused: the key is malformed
	ScopeMissing                                // refused: the caller is unknown
	TooLarge                                    // refused: the request is over the size limit of its policy
	RequestInvalid                              // refused: the request could not be read or understood
	Failed                                      // refused: a function of the policy failed, or the operation is invalid
)

// String returns the outcome as it appears in logs and metrics.
func (o Outcome) String() string { return text.Name(outcomeNames[:], int(o)) }

var outcomeNames = [...]string{
	Claimed: "claimed", InProgress: "in-progress", Replayed: "replayed", Mismatch: "mismatch", Lapsed: "lapsed",
	Expired: "expired", Unprotected: "unprotected", Unavailable: "unavailable", Corrupt: "corrupt",
	KeyMissing: "key-missing", KeyInvalid: "key-invalid", ScopeMissing: "scope-missing",
	TooLarge: "too-large", RequestInvalid: "request-invalid", Failed: "internal-error",
}

// Outcomes returns every outcome of a request.
func Outcomes() []Outcome { return enumerate[Outcome](len(outcomeNames)) }

// AttemptEnd says how an attempt ended. Each attempt that Begin returned and that its
// caller ended has exactly one, which the engine counts under the label of its policy
// (see [Stats]), and which exactly one counted [Event] carries.
//
// An attempt whose completion continues in the background has not ended: its result was
// sent unrecorded, and it ends as EndRecorded or EndDropped.
type AttemptEnd uint8

// The ends of an attempt. The zero value is not one of them.
const (
	EndRecorded   AttemptEnd = iota + 1 // its result is kept
	EndReleased                         // its claim is forgotten: the next request runs
	EndUnrecorded                       // its result was sent, and no record will have it: the claim lapses, or there was none
	EndSuperseded                       // another attempt completed first, and its result was sent
	EndContested                        // another attempt runs, or may have run
	EndNotApplied                       // its transaction was rolled back, a retry runs again
	EndUndecided                        // whether its transaction was committed is unknown
	EndDropped                          // its completion, release or mark was given up: the claim lapses
	EndUnknown                          // its outcome is unknown: retries are refused until an operator resolves it
)

// String returns the end as it appears in logs and metrics.
func (e AttemptEnd) String() string { return text.Name(endNames[:], int(e)) }

var endNames = [...]string{
	EndRecorded: "recorded", EndReleased: "released", EndUnrecorded: "unrecorded", EndSuperseded: "superseded",
	EndContested: "contested", EndNotApplied: "not-applied", EndUndecided: "undecided", EndDropped: "dropped",
	EndUnknown: "unknown",
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
