package reprise

import (
	"context"
	"errors"
	"fmt"

	"github.com/reprise-go/reprise/core/store"
)

// Do runs fn once for op, and gives its result to every caller that asks for op again. It
// is for operations other than HTTP requests: the message of a queue, a job, a command.
// The engine, the stores and their guarantees are those of requests.
//
// fn gets the context of its attempt: [AttemptFrom] finds the attempt in it, and a
// transactional store its transaction. It is not cancelled when ctx ends, but when the
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
// responses only. replayed says that the result is that of another attempt. op.Decoder
// must be nil.
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
// Every error of Do is a [*DoError]. [SettlementOf] derives from it how the consumer
// settles a message:
//
//	Do returned                                          the message
//	no error: fn ran, or its result was replayed          ack
//	Kept, Answer: fn said Keep, now or before             ack; the refusal is the result
//	EndUnrecorded: fn ran, the record may not exist       ack; the value is returned beside the error
//	InProgress: another attempt runs                      nack, after Remaining
//	a released error of fn                                nack, after a pause of the consumer's
//	Unavailable: the store is, or the engine closed       nack, after a pause
//	EndContested: the lease was lost to another           nack, after a pause; its result follows
//	EndNotApplied: rolled back                            nack, after a pause
//	EndUndecided: whether it was committed is open        nack, after a pause; the next delivery finds out
//	Kept, no Answer: a failure that AtMostOnce kept       park
//	EndUnknown: fn said Unknown, or exceeded MaxRun       park, until an operator resolves it
//	Lapsed: the outcome of an attempt is unknown          park, until an operator resolves it
//	Mismatch: the key belongs to another message          park
//	Expired: it ended, and its result is forgotten        park
//	Corrupt, Failed, ErrUnkept                            park
//
// An attempt whose lease was lost to another that completed (EndSuperseded) returns the
// other's result, as a replay.
func Do[T any](ctx context.Context, e *Engine, op Operation, codec Codec[T], fn func(context.Context) (T, error)) (value T, replayed bool, err error) {
	switch {
	case e == nil || fn == nil:
		return value, false, &DoError{Outcome: Failed, Cause: fmt.Errorf("%w: Do needs an engine and a function", store.ErrInvalid)}
	case op.Decoder != nil:
		err = fmt.Errorf("%w: Operation.Decoder belongs to Do, which reads the record with its codec", store.ErrInvalid)
		e.Refuse(ctx, op.Label, Failed, err)
		return value, false, &DoError{Outcome: Failed, Cause: err}
	}
	d := &doing[T]{codec: orJSON(codec), preset: op.Preset}
	op.Decoder = d
	res, err := e.Begin(ctx, op)
	switch {
	case err != nil:
		return value, false, &DoError{Outcome: res.Outcome, Cause: err}
	case res.Attempt != nil:
		d.attempt = res.Attempt
		return d.run(fn) //nolint:contextcheck // the attempt has its own
	case res.Outcome == Replayed:
		return d.kept.value, true, d.kept.replayError()
	default:
		return value, false, &DoError{Outcome: res.Outcome, Remaining: res.Remaining}
	}
}

// doing is one call of [Do].
type doing[T any] struct {
	codec   Codec[T]
	preset  Preset
	attempt *Attempt
	kept    result[T] // the result that Decode read
}

// Decode reads a record for Begin: see [Operation].Decoder.
func (d *doing[T]) Decode(payload []byte) (annotation string, err error) {
	d.kept, err = decodeResult(d.codec, payload)
	return "", err
}

// run runs fn and ends the attempt.
func (d *doing[T]) run(fn func(context.Context) (T, error)) (value T, replayed bool, err error) {
	ended := false
	defer func() {
		if !ended { // fn panicked, or an error of it whose methods are called below
			d.abandon()
		}
	}()
	value, err = fn(d.attempt.Context())
	switch {
	case d.attempt.Unprotected():
		value, err = d.unprotected(value, err)
	case decisionOf(err) == unknownError:
		var zero T
		value, err = zero, d.unknown(err)
	case err != nil && !d.keeps(err):
		var zero T
		value, err = zero, d.release(err, nil)
	default:
		value, replayed, err = d.keep(value, err)
	}
	ended = true
	return value, replayed, err
}

// keeps reports whether an error of fn is kept.
func (d *doing[T]) keeps(err error) bool {
	decision := decisionOf(err)
	return decision == keepError || decision == byPreset && d.preset == AtMostOnce
}

// abandon ends the attempt of a function that did not return, or returned an error whose
// inspection panics. It is a no-op for an attempt that has ended.
func (d *doing[T]) abandon() {
	if d.preset == AtMostOnce {
		_, _ = d.attempt.Complete(Completion{Payload: appendKept(keptPanic, nil), DiscardEffects: true})
		return
	}
	_ = d.attempt.Release()
}

// release gives the claim up, so that fn runs again.
func (d *doing[T]) release(err, cause error) error {
	e := &DoError{Outcome: Claimed, Err: undecided(err), Cause: cause}
	failed := d.attempt.Release()
	if e.Cause == nil {
		e.Cause = failed // it continues in the background, or the claim lapses
	}
	if errors.Is(failed, ErrRunTooLong) { // the record says so, and refuses the next run
		e.End = EndUnknown
	}
	return e
}

// unknown ends the attempt without a result.
func (d *doing[T]) unknown(err error) error {
	reason := undecided(err)
	failed := d.attempt.Unknown(reason.Error())
	return &DoError{Outcome: Claimed, End: EndUnknown, Err: reason, Cause: failed}
}

// keep completes the attempt with the result of fn.
func (d *doing[T]) keep(value T, err error) (_ T, replayed bool, _ error) {
	payload, read, failed := encodeResult(d.codec, value, err)
	switch {
	case failed == nil:
	case d.attempt.Atomic():
		var zero T
		return zero, false, d.release(err, failed)
	default:
		payload, read = appendKept(keptNothing, nil), result[T]{kind: keptNothing, value: value, err: failed}
	}
	completed, invalid := d.attempt.Complete(Completion{Payload: payload, DiscardEffects: err != nil})
	if invalid != nil { // the attempt was ended before, which Do never does
		return value, false, &DoError{Outcome: Claimed, Err: read.err, Cause: invalid}
	}
	switch completed.End {
	case EndRecorded, EndUnrecorded:
		return read.value, false, d.ended(read, completed)
	case EndSuperseded:
		return d.superseded(completed)
	default:
		var zero T
		return zero, false, &DoError{Outcome: Claimed, End: completed.End, Cause: completed.Err}
	}
}

// ended returns the error, if there is one, for a result that is this attempt's own.
func (d *doing[T]) ended(read result[T], by CompleteResult) error {
	if read.err == nil && by.End == EndRecorded {
		return nil
	}
	return &DoError{
		Outcome: Claimed, End: by.End, Kept: read.err != nil, Answer: read.kind == keptAnswer, Err: read.err, Cause: by.Err,
	}
}

// superseded returns the result that another attempt kept instead.
func (d *doing[T]) superseded(by CompleteResult) (value T, replayed bool, _ error) {
	other, err := decodeResult(d.codec, by.Payload)
	if err != nil {
		return value, false, &DoError{Outcome: Claimed, End: by.End, Cause: err}
	}
	if other.err == nil {
		return other.value, true, nil
	}
	return value, true, &DoError{
		Outcome: Claimed, End: by.End, Kept: true, Answer: other.kind == keptAnswer, Err: other.err, Cause: by.Err,
	}
}

// unprotected ends an attempt that ran without a claim. Its result is not kept.
func (d *doing[T]) unprotected(value T, err error) (T, error) {
	_ = d.attempt.Release() // there is no claim
	failure := &DoError{Outcome: Unprotected, Err: undecided(err), Cause: d.attempt.claimErr}
	switch {
	case decisionOf(err) == unknownError:
		failure.End = EndUnrecorded // no record refuses a retry
		return value, failure
	case err != nil && !d.keeps(err):
		return value, failure
	}
	failure.End, failure.Kept, failure.Answer = EndUnrecorded, err != nil, err != nil
	if _, read, failed := encodeResult(d.codec, value, err); failed == nil { // as with a claim
		value, failure.Err = read.value, read.err
	}
	return value, failure
}
