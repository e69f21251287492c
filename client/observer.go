package repriseclient

import (
	"context"
	"time"
)

// Observer is notified of the calls of a [Transport]. Its methods are called in the
// goroutine of the call, and delay it; they must be safe for concurrent use and must not
// panic.
type Observer interface {
	// StartCall is called before the first attempt. The context that it returns, which must
	// be ctx or a descendant of it, is that of all attempts and of the other methods.
	StartCall(ctx context.Context, e CallStart) context.Context

	// EndAttempt is called after every attempt, when it is known whether another follows.
	EndAttempt(ctx context.Context, e AttemptEnd)

	// EndCall is called once for each StartCall, before the call returns.
	EndCall(ctx context.Context, e CallEnd)
}

// CallStart describes a call that begins to an [Observer].
type CallStart struct {
	Method  string
	Host    string
	KeyHash string // as in [UnknownOutcomeError]
}

// AttemptEnd describes an attempt that ended to an [Observer].
type AttemptEnd struct {
	Number   int           // 1 is the first
	Duration time.Duration // of the attempt
	Status   int           // of the response; 0: there is none
	Code     Code          // of its problem document, if it is one of this package's
	Err      error         // why there is no response
	Retry    bool          // whether another attempt follows
	Wait     time.Duration // before that one
}

// CallEnd describes a call that ended to an [Observer].
type CallEnd struct {
	Outcome  Outcome
	Attempts int
	Duration time.Duration
	Status   int   // of the response; 0: there is none
	Code     Code  // of its problem document, if it is one of this package's
	Err      error // that the call returns
}

// Outcome is how a call ended.
type Outcome uint8

// The outcomes of calls.
const (
	// Answered calls have the response of this run of the operation, or a refusal.
	Answered Outcome = iota + 1

	// AnsweredReplay calls have the response of an earlier request with the key.
	AnsweredReplay

	// GaveUpRetrying calls have a response that a retry could have changed, see [GaveUp].
	GaveUpRetrying

	// OutcomeUnknown calls ended with an [UnknownOutcomeError], or a [RedirectError].
	OutcomeUnknown

	// OutcomeNotSent calls ended with a [NotSentError].
	OutcomeNotSent

	// AnsweredOmitted calls ended with a [BodyOmittedError], or with the stand-in that
	// [Config].AcceptOmitted accepts.
	AnsweredOmitted

	// AnsweredUnprotected calls have the response of an operation that ran although the
	// service could not look up the key: the operation may have run twice
	// (Idempotency-Status: unprotected).
	AnsweredUnprotected

	// AnsweredUnrecorded calls have the response of an operation that the service could not
	// record, or not yet: a further request with the key may run again
	// (Idempotency-Status: unrecorded).
	AnsweredUnrecorded
)

var outcomeNames = [...]string{
	"", "answered", "replayed", "gave-up", "unknown", "not-sent", "omitted", "unprotected", "unrecorded",
}

// String returns the name of the outcome, for logs and metrics.
func (o Outcome) String() string {
	if int(o) < len(outcomeNames) {
		return outcomeNames[o]
	}
	return ""
}

// Outcomes returns all outcomes.
func Outcomes() []Outcome {
	return []Outcome{
		Answered, AnsweredReplay, GaveUpRetrying, OutcomeUnknown, OutcomeNotSent, AnsweredOmitted, AnsweredUnprotected, AnsweredUnrecorded,
	}
}

// silent is the observer that there is by default.
type silent struct{}

func (silent) StartCall(ctx context.Context, _ CallStart) context.Context { return ctx }
func (silent) EndAttempt(context.Context, AttemptEnd)                     {}
func (silent) EndCall(context.Context, CallEnd)                           {}
