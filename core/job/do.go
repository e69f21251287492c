package job

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/store"
)

// Do runs fn once for op, and gives its result to every caller that asks for op again. It
// is for operations other than HTTP requests: the message of a queue, a job, a command.
// The engine, the stores and their guarantees are those of requests.
//
// fn gets the context of its attempt: [reprise.AttemptFrom] finds the attempt in it, and
// a transactional store its transaction. It is not cancelled when ctx ends, but when the
// attempt loses its lease or exceeds Config.MaxRun; ctx bounds only op.Wait. Inside of
// fn, with its context, Do of the same op returns InProgress at once. Effects
// happen exactly once where they are written in the transaction of a transactional store.
// Elsewhere an attempt that dies before its result is kept leaves a lapsed record, and
// op.Preset decides about it.
//
// The codec keeps the result; nil is that of [encoding/json]. Do returns the value as
// decoded from its record, in the first run too, so that a value of which the codec loses
// a part fails the first test and not the first retry. Records have the bytes of the
// codec, in the clear unless the codec seals them: the Seal of package protocol is for
// responses only. Do sets op.Reads.
//
// # Results of fn
//
//	                          Recoverable   AtMostOnce
//	a value                   kept          kept
//	Keep(err)                 kept          kept
//	Retry(err)                released      released
//	Unknown(err)              unknown       unknown
//	another error             released      kept
//	a panic, or Goexit        released      kept as ErrPanicked
//
// A kept result is returned to every later caller. After a release the next caller runs
// fn again. An operation whose outcome is unknown is never run again, before an operator
// resolves it. In the transaction of a transactional store the effects of fn are kept
// with a value, and rolled back in every other case: for a refusal that has effects,
// return a value. A panic reaches the caller of Do. The text of a kept error is in the
// record, where operators read it.
//
// A value or error that the codec cannot write and read back ends the operation without a
// result: the callers get [ErrUnkept]. A transactional store releases the operation
// instead, since its effects can be rolled back.
//
// # Results of Do
//
// Do returns no error if there is a value: fn ran and returned it, or it was replayed.
// That also holds where the record does not have the value: see DoResult.Unrecorded.
//
// Every error of Do is a [*DoError]. [SettlementOf] derives from it how the consumer
// settles a message:
//
//	Do returned                                          the message
//	no error: fn ran, or its result was replayed          ack
//	no error, Unrecorded: the record may not have it      ack; another delivery could only repeat the effect
//	Kept, Answer: fn said Keep, now or before             ack; the refusal is the result
//	Expired: it ended, and its result is forgotten        ack; the message is a late duplicate
//	InProgress: another attempt runs                      nack, after Remaining
//	a released error of fn                                nack, after a pause of the consumer's
//	Unavailable: the store is, or the engine closed       nack, after a pause
//	EndContested: the lease was lost to another           nack, after a pause; its result follows
//	EndNotApplied: rolled back                            nack, after a pause
//	EndUndecided: whether it was committed is open        nack, after a pause; the next delivery finds out
//	Failed: op, or a call of Do, is a mistake             nack, after a pause of the consumer's; log it
//	Kept, no Answer: a failure that AtMostOnce kept       park
//	EndUnknown, no value: fn said Unknown, or ErrTxEnded  park, until an operator resolves it
//	Lapsed: the outcome of an attempt is unknown          park, until an operator resolves it
//	KeyMissing: the message has no ID                     park
//	Mismatch: the key belongs to another message          park
//	Corrupt, ErrUnkept                                    park
//
// An attempt whose lease was lost to another that completed (EndSuperseded) returns the
// other's result, as a replay.
func Do[T any](ctx context.Context, e *reprise.Engine, op reprise.Operation, codec Codec[T], fn func(context.Context) (T, error)) (DoResult[T], error) {
	if e == nil || fn == nil {
		return DoResult[T]{}, &DoError{Outcome: reprise.Failed, Cause: fmt.Errorf("%w: Do needs an engine and a function", store.ErrInvalid)}
	}
	d := &doing[T]{codec: orJSON(codec), preset: op.Preset}
	op.Reads = true
	res, err := e.Begin(ctx, op)
	var kept result[T]
	if res.Outcome == reprise.Replayed {
		kept, err = d.read(&res)
	}
	switch {
	case err != nil:
		return DoResult[T]{}, &DoError{Outcome: res.Outcome, Cause: err}
	case res.Attempt != nil:
		d.attempt = res.Attempt
		return d.run(fn) //nolint:contextcheck // the attempt has its own
	case res.Outcome == reprise.Replayed:
		return DoResult[T]{Value: kept.value, Replayed: true}, kept.replayError()
	default:
		return DoResult[T]{}, &DoError{Outcome: res.Outcome, Remaining: res.Remaining}
	}
}

// DoResult is the result of [Do].
type DoResult[T any] struct {
	// Value is that of fn. Beside an error it is zero, except in the run that ended with
	// ErrUnkept.
	Value T

	// Replayed says that the value, or the kept error, is the result of another attempt.
	Replayed bool

	// Unrecorded is nil if the record has the value. Otherwise fn ran and its effects are
	// done, but the record does not have the value, or not yet, and Unrecorded is a
	// [*DoError] that says why. A later caller may run fn again under Recoverable or
	// FailOpen, and gets Lapsed under AtMostOnce or after a run that exceeded MaxRun.
	Unrecorded error
}

// doing is one call of [Do].
type doing[T any] struct {
	codec   Codec[T]
	preset  reprise.Preset
	attempt *reprise.Attempt
}

// read reads a replayed result, and counts it.
func (d *doing[T]) read(res *reprise.Result) (kept result[T], err error) {
	err = errNotRead
	defer func() { err = res.Read("", err) }()
	return decodeResult(d.codec, res.Payload)
}

var errNotRead = errors.New("the codec ended its goroutine")

// run runs fn and ends the attempt.
func (d *doing[T]) run(fn func(context.Context) (T, error)) (r DoResult[T], err error) {
	ended := false
	defer func() {
		if !ended { // fn panicked, or an error of it whose methods are called below
			d.abandon()
		}
	}()
	value, err := fn(d.attempt.Context())
	d.attempt.Returned()
	switch {
	case d.attempt.Unprotected():
		r, err = d.unprotected(value, err)
	case decisionOf(err) == unknownError:
		err = d.unknown(err)
	case err != nil && !d.keeps(err):
		err = d.release(err, nil)
	default:
		r, err = d.keep(value, err)
	}
	ended = true
	return r, err
}

// keeps reports whether an error of fn is kept.
func (d *doing[T]) keeps(err error) bool {
	decision := decisionOf(err)
	return decision == keepError || decision == byPreset && d.preset == reprise.AtMostOnce
}

// abandon ends the attempt of a function that did not return, or returned an error whose
// inspection panics. It is a no-op for an attempt that has ended.
func (d *doing[T]) abandon() {
	if d.preset == reprise.AtMostOnce {
		_, _ = d.attempt.Complete(reprise.Completion{Payload: appendKept(keptPanic, nil), DiscardEffects: true})
		return
	}
	_ = d.attempt.Release()
}

// release gives the claim up, so that fn runs again.
func (d *doing[T]) release(err, cause error) error {
	failed := d.attempt.Release() // it continues in the background, or the claim lapses
	e := &DoError{Outcome: reprise.Claimed, Err: undecided(err), Cause: cmp.Or(cause, failed)}
	if errors.Is(failed, reprise.ErrRunTooLong) || errors.Is(failed, reprise.ErrTxEnded) { // the record refuses the next run
		e.End = reprise.EndUnknown
	}
	return e
}

// unknown ends the attempt without a result.
func (d *doing[T]) unknown(err error) error {
	reason := undecided(err)
	failed := d.attempt.Unknown(reason.Error())
	return &DoError{Outcome: reprise.Claimed, End: reprise.EndUnknown, Err: reason, Cause: failed}
}

// keep completes the attempt with the result of fn.
func (d *doing[T]) keep(value T, err error) (DoResult[T], error) {
	payload, read, failed := encodeResult(d.codec, value, err)
	switch {
	case failed == nil:
	case d.attempt.Transactional():
		return DoResult[T]{}, d.release(err, failed)
	default:
		payload, read = appendKept(keptNothing, nil), result[T]{kind: keptNothing, value: value, err: failed}
	}
	completed, invalid := d.attempt.Complete(reprise.Completion{Payload: payload, DiscardEffects: err != nil})
	if invalid != nil { // the attempt was ended before, which Do never does
		return DoResult[T]{Value: value}, &DoError{Outcome: reprise.Claimed, Err: read.err, Cause: invalid}
	}
	how := &DoError{Outcome: reprise.Claimed, End: completed.End, Cause: completed.Err}
	if errors.Is(completed.Err, reprise.ErrTxEnded) { // its effects may be undone
		how.Err = undecided(err)
		return DoResult[T]{}, how
	}
	switch completed.End {
	case reprise.EndRecorded, reprise.EndUnrecorded, reprise.EndUnknown:
		return read.done(how)
	case reprise.EndSuperseded:
		other, err := decodeResult(d.codec, completed.Payload)
		if err != nil {
			how.Cause = err
			return DoResult[T]{}, how
		}
		return other.done(how)
	default:
		return DoResult[T]{}, how
	}
}

// done returns the result of an attempt that ended as how says.
func (r *result[T]) done(how *DoError) (DoResult[T], error) {
	done := DoResult[T]{Value: r.value, Replayed: how.End == reprise.EndSuperseded}
	switch {
	case r.err != nil:
		how.Kept, how.Answer, how.Err = true, r.kind == keptAnswer, r.err
		return done, how
	case how.End == reprise.EndUnrecorded, how.End == reprise.EndUnknown:
		done.Unrecorded = how
	}
	return done, nil
}

// unprotected ends an attempt that ran without a claim. Its result is not kept.
func (d *doing[T]) unprotected(value T, err error) (DoResult[T], error) {
	ended, _ := d.attempt.Complete(reprise.Completion{}) // which says why there is no claim
	how := &DoError{Outcome: reprise.Unprotected, Err: undecided(err), Cause: ended.Err}
	switch {
	case decisionOf(err) == unknownError:
		how.End = reprise.EndUnrecorded // no record refuses a retry
		return DoResult[T]{}, how
	case err != nil && !d.keeps(err):
		return DoResult[T]{}, how
	}
	how.End = reprise.EndUnrecorded
	_, read, failed := encodeResult(d.codec, value, err)
	if failed != nil { // no record needs it
		read = result[T]{kind: keptAnswer, value: value, err: how.Err}
	}
	return read.done(how)
}
