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
		return a.completed(EndUnrecorded, a.claimErr), nil
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
		return a.completed(EndRecorded, nil), nil
	case errors.Is(err, store.ErrLeaseLost):
		return a.completeLost(ctx, r), nil
	default:
		return a.completeLater(r, err), nil
	}
}

// completed concludes an attempt whose result may be sent as end says.
func (a *Attempt) completed(end AttemptEnd, why error) CompleteResult {
	a.conclude(end, why)
	return CompleteResult{End: end, Err: why}
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
			return a.completed(EndRecorded, nil)
		}
	}
	if err != nil {
		return a.completeLater(r, err)
	}
	end, why := endOfLost(holder.Outcome), store.ErrLeaseLost
	if overran {
		end, why, a.reason = EndUnknown, errNotReturned, overrunReason
	}
	res := a.completed(end, why)
	res.Payload = holder.Payload
	return res
}

// completeLater lets the result be sent, unrecorded, and repeats the completion where
// that is useful.
func (a *Attempt) completeLater(r store.CompleteRequest, err error) CompleteResult {
	if f, _ := classify(err); !f.repeatEnd {
		return a.completed(EndUnrecorded, err)
	}
	a.observe(Event{End: EndUnrecorded, Err: err})
	a.endLater(EndRecorded, r, err)
	return CompleteResult{End: EndUnrecorded, Err: err}
}

// An attempt whose handler has begun a transaction of the store (see
// [Operation].Transactional) is leased as all others are. Only the completion that keeps
// effects differs:
//
//	committed                    EndRecorded
//	the record is another's      rolled back: EndSuperseded or EndContested, by its holder;
//	                             EndNotApplied where no other attempt has it
//	not applied                  released: EndNotApplied
//	the handler ended it itself  the record says that the outcome is unknown: EndUnknown
//	undecided                    EndUndecided: the lease ends, and the retry finds out
//
// In every other case the transaction is rolled back first, and the attempt then ends as
// one that has none.

// commit ends an attempt by committing its transaction with the completion.
func (a *Attempt) commit(ctx context.Context, r store.CompleteRequest) CompleteResult {
	decided := false
	defer func() {
		if !decided { // the store ended the goroutine
			a.conclude(EndUndecided, errNoReturn)
		}
	}()
	err := a.engine.store.commit(ctx, a.tx, r)
	decided = true
	switch {
	case err == nil:
		return a.completed(EndRecorded, nil)
	case errors.Is(err, store.ErrLeaseLost):
		return a.commitLost(ctx)
	}
	a.observe(Event{Kind: EventStoreError, Err: err})
	switch {
	case errors.Is(err, store.ErrNotApplied):
		return a.notApplied(ctx, err)
	case errors.Is(err, store.ErrMisconfigured):
		return a.endedByHandler(ctx, err)
	default:
		return a.completed(EndUndecided, err)
	}
}

// commitLost determines the end of an attempt whose transaction was rolled back because
// its record was not its own any more.
func (a *Attempt) commitLost(ctx context.Context) CompleteResult {
	if !a.lost.Swap(true) {
		a.observe(Event{Kind: EventLeaseLost})
	}
	holder, err := a.holder(ctx)
	switch {
	case err != nil, holder.Outcome == store.Claimed: // it is not known to be another's, or was lost and is this attempt's anew
		return a.notApplied(ctx, store.ErrLeaseLost)
	case holder.Outcome == store.Mismatch:
		return a.completed(EndNotApplied, store.ErrLeaseLost)
	}
	res := a.completed(endOfLost(holder.Outcome), store.ErrLeaseLost)
	res.Payload = holder.Payload
	return res
}

// notApplied releases the claim of an attempt whose effects were rolled back, so that the
// retry runs.
func (a *Attempt) notApplied(ctx context.Context, cause error) CompleteResult {
	err := a.repeat(ctx, a.releaseOnce)
	if f, _ := classify(err); err != nil && f.repeatEnd {
		a.observe(Event{End: EndNotApplied, Err: cause})
		a.endLater(EndReleased, store.CompleteRequest{}, err)
		return CompleteResult{End: EndNotApplied, Err: cause}
	}
	a.releaseLateTry()
	return a.completed(EndNotApplied, cause)
}

// endedByHandler ends an attempt whose handler committed its transaction, or rolled it
// back, by a statement. Its effects may be permanent, so that a retry must not run.
func (a *Attempt) endedByHandler(ctx context.Context, cause error) CompleteResult {
	a.reason = "the handler ended the transaction of its attempt by itself"
	if err := a.repeat(ctx, func(ctx context.Context) error { return a.sayUnknown(ctx, a.reason) }); err != nil {
		a.endLater(EndUnknown, store.CompleteRequest{}, err)
		return CompleteResult{End: EndUnknown, Err: cause}
	}
	return a.completed(EndUnknown, cause)
}
