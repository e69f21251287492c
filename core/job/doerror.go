package job

import (
	"errors"
	"time"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/internal/text"
	"github.com/reprise-go/reprise/core/store"
)

// The failures of an operation that [Do] keeps, for [errors.Is].
var (
	// ErrPanicked says that the function panicked, or ended its goroutine, and that
	// AtMostOnce keeps it from running again.
	ErrPanicked = errors.New("reprise: the operation panicked")

	// ErrUnkept says that the operation ended, and that its result could not be encoded.
	ErrUnkept = errors.New("reprise: the result of the operation cannot be kept")
)

// DoError is every error of [Do].
type DoError struct {
	// Outcome says whether fn ran: it did for Claimed and Unprotected, and for Replayed in
	// an earlier call.
	Outcome reprise.Outcome

	// End says how the attempt ended by its completion, or by Unknown. It is zero where
	// there was neither: fn did not run, or its attempt was released. A release that came
	// too late after Config.MaxRun is EndUnknown, and one with [reprise.ErrTxEnded].
	End reprise.AttemptEnd

	// Kept says that Err is the result of the operation, which every retry gets again.
	// With EndUnrecorded a retry may run instead, and with EndUnknown it is refused.
	Kept bool

	// Answer says that fn returned Err with [Keep]: it is a result, and no failure.
	Answer bool

	// Remaining, of InProgress, is the rest of the other attempt's lease. Zero is unknown.
	Remaining time.Duration

	// Err is the error of fn, as it was in the first run. It is nil where fn returned
	// none, and where it did not run.
	Err error

	// Cause is why fn did not run, why its result is not recorded, or why its release was
	// not confirmed; nil where there is no such thing.
	Cause error
}

// Error returns the text of Err where there is one, and otherwise describes the outcome
// or end.
func (e *DoError) Error() string {
	switch {
	case e.Err != nil:
		return e.Err.Error()
	case e.End != 0:
		return "reprise: the operation ran, and its result is " + e.End.String() + because(e.Cause)
	case e.Outcome == reprise.Unprotected:
		return "reprise: the operation ran without protection" + because(e.Cause)
	case e.Cause != nil:
		return e.Cause.Error()
	default:
		return "reprise: the operation did not run: " + e.refusal()
	}
}

// refusal says why the operation did not run.
func (e *DoError) refusal() string {
	switch e.Outcome {
	case reprise.InProgress:
		return "another attempt is running"
	case reprise.Mismatch:
		return "the key belongs to another operation"
	case reprise.Lapsed:
		return "the outcome of the last attempt is unknown"
	case reprise.Expired:
		return "it has ended, and its result is not kept any more"
	default:
		return e.Outcome.String()
	}
}

func because(cause error) string {
	if cause == nil {
		return ""
	}
	return ": " + cause.Error()
}

// Unwrap returns Err and Cause.
func (e *DoError) Unwrap() []error {
	var list []error
	for _, err := range [...]error{e.Err, e.Cause} {
		if err != nil {
			list = append(list, err)
		}
	}
	return list
}

// Keep marks an error of a function that [Do] runs as the result of the operation, such
// as a refusal: it is kept under either preset, and every retry gets it. Retries get the
// same text; the result of [errors.Is] and [errors.As] depends on the codec (see
// [ErrorCodec]), in the first run as well. Keep(nil) is nil.
func Keep(err error) error { return decide(err, keepError) }

// Retry marks an error of a function that [Do] runs as one after which the operation may
// run again: its claim is released under either preset. It suits failures before any
// effect. Retry(nil) is nil.
func Retry(err error) error { return decide(err, retryError) }

// Unknown marks an error of a function that [Do] runs as one that leaves the outcome of
// the operation unknown, such as a timeout of a bank: under either preset it runs no
// more, and every later caller gets Lapsed until an operator resolves it. The text of err
// is the reason that operators read (see [reprise.Attempt.Unknown]). Unknown(nil) is nil.
func Unknown(err error) error { return decide(err, unknownError) }

// errorDecision is the decision of a function of [Do] about its error.
type errorDecision uint8

const (
	byPreset errorDecision = iota
	keepError
	retryError
	unknownError
)

func decide(err error, decision errorDecision) error {
	if err == nil {
		return nil
	}
	return &decidedError{err: err, decision: decision}
}

// decidedError is an error with the decision of fn about it.
type decidedError struct {
	err      error
	decision errorDecision
}

func (e *decidedError) Error() string { return e.err.Error() }

func (e *decidedError) Unwrap() error { return e.err }

// decisionOf returns the decision of fn about its error: the outermost one in it. The
// decision of another call of Do within fn is about its own operation, and does not
// count.
func decisionOf(err error) errorDecision {
	switch e := err.(type) { //nolint:errorlint // it is a walk like that of errors.As
	case *decidedError:
		return e.decision
	case *DoError:
		return byPreset
	case interface{ Unwrap() error }:
		return decisionOf(e.Unwrap())
	case interface{ Unwrap() []error }:
		for _, inner := range e.Unwrap() {
			if decision := decisionOf(inner); decision != byPreset {
				return decision
			}
		}
	}
	return byPreset
}

// undecided returns err without a decision around it.
func undecided(err error) error {
	if decided, ok := err.(*decidedError); ok { //nolint:errorlint // one inside belongs to the text around it
		return decided.err
	}
	return err
}

// Action is how a consumer settles a message. Every queue has it under this name, or a
// similar one.
type Action uint8

// The actions. The zero value is not one of them.
const (
	Ack  Action = iota + 1 // the message is done
	Nack                   // deliver it again
	Park                   // set it aside for a person: delivered again, it would end the same way
)

// String returns the action as it appears in logs.
func (a Action) String() string { return text.Name(actionNames[:], int(a)) }

var actionNames = [...]string{Ack: "ack", Nack: "nack", Park: "park"}

// The default pauses, where the wait is unknown.
const (
	pauseRunning = time.Second
	pauseStore   = 2 * time.Second
)

// SettlementOf returns how a consumer settles a message for which [Do] returned err. The
// delay is the pause before the next delivery of a Nack. Zero leaves it to the consumer,
// whose own backoff should grow with the number of deliveries. An error that is not of Do
// is a Nack.
//
// A message parks for what is wrong with the message or its record. Mistakes of the
// program, such as a Retention out of its range, are a Nack: every message would park
// until they are corrected. A message may park again, each time that a duplicate of it is
// delivered, so name its dead letter after the message.
func SettlementOf(err error) (action Action, delay time.Duration) {
	if err == nil {
		return Ack, 0
	}
	var e *DoError
	if !errors.As(err, &e) {
		return Nack, 0
	}
	return e.settlement()
}

// isUnknown reports whether fn said that the outcome is unknown, ended its transaction,
// or failed after MaxRun. Then it has no result, although no other attempt may run.
func (e *DoError) isUnknown() bool {
	return e.End != 0 && !e.Kept && (e.Err != nil || errors.Is(e.Cause, ErrUnkept) || errors.Is(e.Cause, reprise.ErrTxEnded))
}

func (e *DoError) settlement() (action Action, delay time.Duration) {
	switch {
	case e.End == reprise.EndNotApplied, e.End == reprise.EndContested:
		return Nack, pauseRunning
	case e.End == reprise.EndUndecided:
		return Nack, pauseStore
	case e.Answer:
		return Ack, 0
	case e.Kept, e.isUnknown():
		return Park, 0
	case e.End == reprise.EndUnrecorded, e.End == reprise.EndUnknown: // the effect is done, and another run could only repeat it
		return Ack, 0
	case errors.Is(e.Cause, store.ErrCorrupt), errors.Is(e.Cause, ErrUnkept):
		return Park, 0
	}
	switch e.Outcome {
	case reprise.Claimed, reprise.Unprotected, reprise.Failed: // released, or a mistake of the program
		return Nack, 0
	case reprise.Expired: // its first delivery was settled by the result
		return Ack, 0
	case reprise.InProgress:
		if e.Remaining > 0 {
			return Nack, e.Remaining
		}
		return Nack, pauseRunning
	case reprise.Unavailable:
		return Nack, pauseStore
	default: // refused for good
		return Park, 0
	}
}
