package reprise

import (
	"context"
	"errors"
	"fmt"

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
	//	EndUnknown     retries are refused: refuse as well with [ErrTxEnded]; else the run
	//	               exceeded MaxRun: send the result, marked
	//	EndNotApplied  its transaction was rolled back: refuse, a retry runs again
	//	EndUndecided   its transaction may have been committed: refuse, a retry finds out
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
	begun := a.tx != nil && a.closeTx()
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
		if err := a.rollback(ctx); errors.Is(err, store.ErrMisconfigured) {
			return a.endedByHandler(ctx, err), nil
		}
	case begun:
		a.state.Store(stateForgetting)
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
// one that has none, or as here where its handler ended the transaction itself.

// commit ends an attempt by committing its transaction with the completion.
func (a *Attempt) commit(ctx context.Context, r store.CompleteRequest) CompleteResult {
	defer func() {
		if !a.settled { // the store or an observer ended the goroutine
			a.conclude(EndUndecided, errNoReturn)
		}
	}()
	err := a.engine.store.commit(ctx, a.tx.Transaction, r)
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
	a.reason, cause = "the handler ended the transaction of its attempt by itself", fmt.Errorf("%w: %w", ErrTxEnded, cause)
	a.state.Store(stateForgetting)
	err := errNoReturn
	defer func() {
		if !a.settled {
			a.endLater(EndUnknown, store.CompleteRequest{}, err)
		}
	}()
	if err = a.repeat(ctx, func(ctx context.Context) error { return a.sayUnknown(ctx, a.reason) }); err == nil {
		a.conclude(EndUnknown, cause)
	}
	return CompleteResult{End: EndUnknown, Err: cause}
}

// end makes sure that an attempt is ended once.
func (a *Attempt) end(state uint32) error {
	if !a.state.CompareAndSwap(stateRunning, state) && !a.state.CompareAndSwap(stateReturned, state) {
		return fmt.Errorf("%w: the attempt has already ended", store.ErrInvalid)
	}
	return nil
}

// conclude closes an attempt, counts how it ended, and notifies the observer, from the
// goroutine of the request.
func (a *Attempt) conclude(end AttemptEnd, err error) {
	a.settled = true
	defer a.engine.work.done() // also when the observer ends the goroutine
	if event, ok := a.ended(end, err); ok {
		a.engine.observing.notify(a.values, event)
	}
}

// concludeLater is conclude for work that no request waits for.
func (a *Attempt) concludeLater(end AttemptEnd, err error) {
	if event, ok := a.ended(end, err); ok {
		a.engine.observing.queue(a.after, event)
	}
	a.engine.work.done()
}

// ended removes an ended attempt from the renewer and the table, ends its context, and
// counts how it ended. It is called once for each. It returns the event of the end, if
// the observer wants it; its caller then calls openWork.done.
func (a *Attempt) ended(end AttemptEnd, err error) (event Event, ok bool) {
	e := a.engine
	a.lost.Store(true)
	e.renewer.remove(a)
	e.table.remove(a)
	a.run.cancel(context.Canceled)
	e.waiters.wake(a.id)
	event = Event{End: end, Counted: !a.unrun, Attempt: a.number, Fence: a.fence, Err: err, Reason: a.reason}
	if event.Counted {
		a.tally.ends[end].Add(1)
	}
	if !e.observing.wants(&event) || a.unrun && a.unprotected {
		return event, false
	}
	a.describe(&event)
	if event.Counted && a.started != 0 {
		at := event.Elapsed + a.began
		if a.ending == 0 {
			a.ending = at // it was ended without the store
		}
		event.RunTime, event.CompleteTime = a.ending-a.started, at-a.ending
	}
	return event, true
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

// holder returns the result of the attempt's claim without takeover, which says who has
// the record.
func (a *Attempt) holder(ctx context.Context) (holder store.ClaimResult, err error) {
	err = a.repeat(ctx, func(ctx context.Context) (err error) {
		holder, err = a.engine.store.claim(ctx, a.claimRequest(false))
		return err
	})
	return holder, err
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

// closeTx takes the transaction away from the handler, and reports whether it has begun.
func (a *Attempt) closeTx() (begun bool) {
	defer func() {
		if recover() != nil {
			begun = true // it may have
		}
	}()
	return a.tx.Close()
}

// rollback undoes what the handler wrote in its transaction. If that fails otherwise than
// with ErrMisconfigured, the store has closed the connection, and the server does it.
func (a *Attempt) rollback(ctx context.Context) error {
	err := a.engine.store.rollback(ctx, a.tx.Transaction)
	if err != nil {
		a.observe(Event{Kind: EventStoreError, Err: err})
	}
	return err
}

// ErrTxEnded says that the handler ended the transaction of its attempt by itself, so
// that its effects may be permanent.
var ErrTxEnded = errors.New("reprise: transaction ended by its handler")

// sayUnknown tells the store.
func (a *Attempt) sayUnknown(ctx context.Context, reason string) error {
	return a.engine.store.unknown(ctx, store.UnknownRequest{ID: a.id, Owner: a.owner, Reason: reason})
}

// overrunReason is the reason in the record of a handler that did not return within a
// lease after Config.MaxRun.
const overrunReason = "ran longer than MaxRun"

// errNotReturned is why the result of such an attempt is not recorded.
var errNotReturned = fmt.Errorf("%w, and its handler did not return within a lease more: its record says that its outcome is unknown", ErrRunTooLong)
