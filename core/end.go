package reprise

import (
	"context"
	"errors"
	"fmt"

	"github.com/reprise-go/reprise/core/store"
)

// end makes sure that an attempt is ended once.
func (a *Attempt) end(state uint32) error {
	if !a.state.CompareAndSwap(stateRunning, state) && !a.state.CompareAndSwap(stateReturned, state) {
		return fmt.Errorf("%w: the attempt has already ended", store.ErrInvalid)
	}
	return nil
}

// close removes an ended attempt from the renewer and the table, and ends its context.
// Its caller then notifies the observer and calls openWork.done.
func (a *Attempt) close() {
	e := a.engine
	e.renewer.remove(a)
	e.table.remove(a)
	a.run.cancel(context.Canceled)
	e.waiters.wake(a.id)
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

// ended closes an attempt and counts how it ended. It is called once for each. It returns
// the event of the end, if the observer wants it.
func (a *Attempt) ended(end AttemptEnd, err error) (event Event, ok bool) {
	a.lost.Store(true)
	a.close()
	event = Event{End: end, Counted: !a.unrun, Attempt: a.number, Fence: a.fence, Err: err, Reason: a.reason}
	if event.Counted {
		a.tally.end(end)
	}
	if !a.engine.observing.wants(&event) || a.unrun && a.unprotected {
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

// closeTx takes the transaction away from the handler, and reports whether there is one
// that has begun.
func (a *Attempt) closeTx() (begun bool) {
	if a.tx == nil {
		return false
	}
	defer func() {
		if recover() != nil {
			begun = true // it may have
		}
	}()
	return a.tx.Close()
}

// rollback undoes what the handler wrote in its transaction. If that fails, the store has
// closed the connection, and the server does it.
func (a *Attempt) rollback(ctx context.Context) {
	if err := a.engine.store.rollback(ctx, a.tx); err != nil {
		a.observe(Event{Kind: EventStoreError, Err: err})
	}
}

// sayUnknown tells the store.
func (a *Attempt) sayUnknown(ctx context.Context, reason string) error {
	return a.engine.store.unknown(ctx, store.UnknownRequest{ID: a.id, Owner: a.owner, Reason: reason})
}

// overrunReason is the reason in the record of a handler that did not return within a
// lease after Config.MaxRun.
const overrunReason = "ran longer than MaxRun"

// errNotReturned is why the result of such an attempt is not recorded.
var errNotReturned = fmt.Errorf("%w, and its handler did not return within a lease more: its record says that its outcome is unknown", ErrRunTooLong)
