package reprise

import (
	"context"
	"errors"

	"github.com/reprise-go/reprise/core/store"
)

// Completion is the result to keep.
type Completion struct {
	Payload []byte // kept as it is; the caller may reuse it after Complete

	// DiscardEffects keeps the result and rolls back what the handler wrote in the
	// transaction of its attempt.
	DiscardEffects bool
}

// CompleteResult says how an attempt ended by its completion, and so which result its
// client gets.
type CompleteResult struct {
	// End is one of these:
	//
	//	EndRecorded    the result is kept: send it
	//	EndUnrecorded  the effect is done, and the record may not be: send the result, marked
	//	EndSuperseded  another attempt completed first: send its result, Payload
	//	EndContested   another attempt runs, or may have run: refuse, a retry gets its result
	//	EndUnknown     the run exceeded MaxRun, and retries are refused: send the result, marked
	//	EndNotApplied  its transaction was rolled back: refuse, a retry runs again
	//	EndUndecided   whether its transaction was committed is unknown: refuse, a retry finds out
	End AttemptEnd

	Payload []byte // of EndSuperseded: the result that was kept instead; it must not be modified
	Err     error  // why the end is not EndRecorded; nil where it is
}

// endOfLost returns the end of an attempt that lost its lease, from the outcome of the
// claim that followed: the result was superseded or contested, or, where the key now
// belongs to another request, is unrecorded. Claimed is never passed: the record itself
// was lost, so the completion is tried once more.
func endOfLost(holder store.Outcome) AttemptEnd {
	switch holder {
	case store.Completed:
		return EndSuperseded
	case store.Mismatch:
		return EndUnrecorded
	default: // InProgress, Lapsed, and Expired: another attempt completed, and its result is gone
		return EndContested
	}
}

// Complete ends the attempt and keeps its result. Call it before the result is sent:
// CompleteResult says which one may be. It is bounded by Config.CompleteTimeout. A
// completion that the store could not take by then is repeated in the background, until
// the store has a definite result, or the engine closes. The lease is kept until the
// store refuses the completion, or its first failure beyond Config.Background.Age: from
// then on it is repeated until its lease has passed. The error is [store.ErrInvalid], for
// an attempt that was ended before.
func (a *Attempt) Complete(c Completion) (CompleteResult, error) {
	if err := a.end(stateCompleting); err != nil {
		return CompleteResult{}, err
	}
	if a.unprotected {
		a.conclude(EndUnrecorded, a.claimErr)
		return CompleteResult{End: EndUnrecorded, Err: a.claimErr}, nil
	}
	ctx := a.completionContext()
	begun := a.closeTx()
	r := store.CompleteRequest{
		ID: a.id, Owner: a.owner, Payload: c.Payload, Policy: a.policy,
		Fingerprint: a.fingerprint, Description: a.description, Attempt: a.number, Fence: a.fence,
	}
	defer func() {
		if !a.settled { // the store or an observer ended the goroutine
			a.endLater(EndRecorded, r, errNoReturn)
		}
	}()
	switch {
	case begun && c.DiscardEffects:
		a.rollback(ctx)
	case begun:
		return a.commit(ctx, r), nil
	}
	err := a.repeat(ctx, func(ctx context.Context) error { return a.engine.store.complete(ctx, r) })
	switch {
	case err == nil:
		a.conclude(EndRecorded, nil)
		return CompleteResult{End: EndRecorded}, nil
	case errors.Is(err, store.ErrLeaseLost):
		return a.completeLost(ctx, r), nil
	default:
		return a.completeLater(r, err), nil
	}
}

// completeLost determines the end of an attempt after the store called its lease lost:
// the claim of the same owner, without takeover, says who has it now.
func (a *Attempt) completeLost(ctx context.Context, r store.CompleteRequest) CompleteResult {
	kept := !a.lost.Swap(true)
	holder, err := a.holder(ctx)
	overran := false
	if err == nil && holder.Outcome == store.Lapsed && a.marking.Load() {
		// The mark succeeds again if the record is this attempt's. Then no other attempt ran.
		err = a.repeat(ctx, func(ctx context.Context) error { return a.sayUnknown(ctx, overrunReason) })
		if overran = err == nil; errors.Is(err, store.ErrLeaseLost) {
			err = nil
		}
	}
	if kept && !overran {
		a.observe(Event{Kind: EventLeaseLost})
	}
	if err == nil && holder.Outcome == store.Claimed { // the record itself was lost, and is this attempt's anew
		r.Attempt, r.Fence = holder.Attempt, holder.Fence
		err = a.repeat(ctx, func(ctx context.Context) error { return a.engine.store.complete(ctx, r) })
		if err == nil {
			a.conclude(EndRecorded, nil)
			return CompleteResult{End: EndRecorded}
		}
	}
	if err != nil {
		return a.completeLater(r, err)
	}
	end, why := endOfLost(holder.Outcome), store.ErrLeaseLost
	if overran {
		end, why, a.reason = EndUnknown, errNotReturned, overrunReason
	}
	a.conclude(end, why)
	return CompleteResult{End: end, Payload: holder.Payload, Err: why}
}

// holder returns the result of the attempt's claim without takeover, which says who has
// the record.
func (a *Attempt) holder(ctx context.Context) (holder store.ClaimResult, err error) {
	err = a.repeat(ctx, func(ctx context.Context) (err error) {
		holder, err = a.engine.store.claim(ctx, a.claimRequest(false))
		return err
	})
	return holder, err
}

// completeLater lets the result be sent, unrecorded, and repeats the completion where
// that is useful.
func (a *Attempt) completeLater(r store.CompleteRequest, err error) CompleteResult {
	if f, _ := classify(err); f.repeatEnd {
		a.observe(Event{End: EndUnrecorded, Err: err})
		a.endLater(EndRecorded, r, err)
	} else {
		a.conclude(EndUnrecorded, err)
	}
	return CompleteResult{End: EndUnrecorded, Err: err}
}

// completionContext returns the context in which the store is asked to end the attempt,
// from now on.
func (a *Attempt) completionContext() context.Context {
	at := sinceStart()
	a.ending = at
	ctx := a.engine.completing.context(at)
	if !a.hasValues() {
		return ctx
	}
	a.completion = callContext{Context: ctx, values: a.values}
	return &a.completion
}

// repeat repeats a completion or release until it succeeds, ctx ends, or repeating at
// once is of no use.
func (a *Attempt) repeat(ctx context.Context, operation func(context.Context) error) error {
	for wait := firstPause; ; wait = min(4*wait, longestPause) {
		err := operation(ctx)
		if err == nil {
			return nil
		}
		if !errors.Is(err, store.ErrLeaseLost) { // which is a result
			a.observe(Event{Kind: EventStoreError, Err: err})
		}
		if f, _ := classify(err); !f.repeatEnd || f.refused || !pause(ctx, wait) {
			return err
		}
	}
}
