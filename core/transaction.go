package reprise

import (
	"context"
	"errors"

	"github.com/reprise-go/reprise/core/store"
)

// This file ends attempts whose handlers have begun a transaction of the store: see
// [Operation].Transactional. Their claims are leased, as all others are. What differs is
// the completion that keeps effects:
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
		a.conclude(EndRecorded, nil)
		return CompleteResult{End: EndRecorded}
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
		a.conclude(EndUndecided, err)
		return CompleteResult{End: EndUndecided, Err: err}
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
		a.conclude(EndNotApplied, store.ErrLeaseLost)
		return CompleteResult{End: EndNotApplied, Err: store.ErrLeaseLost}
	}
	end := endOfLost(holder.Outcome)
	a.conclude(end, store.ErrLeaseLost)
	return CompleteResult{End: end, Payload: holder.Payload, Err: store.ErrLeaseLost}
}

// notApplied releases the claim of an attempt whose effects were rolled back, so that the
// retry runs.
func (a *Attempt) notApplied(ctx context.Context, cause error) CompleteResult {
	res := CompleteResult{End: EndNotApplied, Err: cause}
	err := a.repeat(ctx, a.releaseOnce)
	if f, _ := classify(err); err != nil && f.repeatEnd {
		a.observe(Event{End: EndNotApplied, Err: cause})
		a.endLater(EndReleased, store.CompleteRequest{}, err)
		return res
	}
	a.releaseLateTry()
	a.conclude(EndNotApplied, cause)
	return res
}

// endedByHandler ends an attempt whose handler committed its transaction, or rolled it
// back, by a statement. Its effects may be permanent, so that a retry must not run.
func (a *Attempt) endedByHandler(ctx context.Context, cause error) CompleteResult {
	a.reason = "the handler ended the transaction of its attempt by itself"
	res := CompleteResult{End: EndUnknown, Err: cause}
	if err := a.repeat(ctx, func(ctx context.Context) error { return a.sayUnknown(ctx, a.reason) }); err != nil {
		a.endLater(EndUnknown, store.CompleteRequest{}, err)
		return res
	}
	a.conclude(EndUnknown, cause)
	return res
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

// commit calls [store.Transaction].Commit.
func (d *driver) commit(ctx context.Context, tx store.Transaction, r store.CompleteRequest) (err error) {
	defer classified(&err)
	return tx.Commit(ctx, r)
}

// rollback calls [store.Transaction].Rollback.
func (d *driver) rollback(ctx context.Context, tx store.Transaction) (err error) {
	defer classified(&err)
	return tx.Rollback(ctx)
}
