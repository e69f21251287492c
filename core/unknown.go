package reprise

import (
	"context"
	"errors"
	"fmt"

	"github.com/reprise-go/reprise/core/internal/bounds"
	"github.com/reprise-go/reprise/core/store"
)

// Unknown ends the attempt without a result: whether its effects happened is not known
// here, as when a bank did not answer in time. Its record is never taken over, whatever
// its preset: every retry gets Lapsed until an operator resolves it, or its retention and
// horizon have ended. What the handler wrote in the transaction of its attempt is rolled
// back.
//
// The reason is kept in the record for operators, and for them only. It has up to
// [store.MaxReason] bytes: a longer one is cut and ends in "...". Each character that is
// not printable ASCII becomes a "?", and an empty reason "no reason given".
//
// Call it before the result is sent. It is bounded and repeated as Complete is. An error
// other than [store.ErrInvalid] says that the record does not say so, or not yet: the
// repetition continues in the background, or, where it is useless, the claim lapses. For
// an unprotected attempt it is always the reason why there is no claim.
func (a *Attempt) Unknown(reason string) error {
	if err := a.end(stateUnknown); err != nil {
		return err
	}
	if a.unprotected {
		a.conclude(EndUnrecorded, a.claimErr)
		return a.claimErr
	}
	if a.reason = bounds.Printable(reason, store.MaxReason); reason == "" {
		a.reason = "no reason given"
	}
	defer func() {
		if !a.settled { // the store or an observer ended the goroutine
			a.endLater(EndUnknown, store.CompleteRequest{}, errNoReturn)
		}
	}()
	ctx := a.completionContext()
	if a.closeTx() {
		a.rollback(ctx)
	}
	say := func(ctx context.Context) error { return a.sayUnknown(ctx, a.reason) }
	err := a.repeat(ctx, say)
	if errors.Is(err, store.ErrLeaseLost) {
		var holder store.ClaimResult
		if holder, err = a.holder(ctx); err == nil && holder.Outcome == store.Claimed { // the record itself was lost, and is this attempt's anew
			err = a.repeat(ctx, say)
		} else if err == nil {
			a.conclude(endOfLost(holder.Outcome), store.ErrLeaseLost)
			return store.ErrLeaseLost
		}
	}
	f, _ := classify(err)
	switch {
	case err == nil:
		a.conclude(EndUnknown, nil)
	case !f.repeatEnd:
		a.conclude(EndDropped, fmt.Errorf("%w: %w", errDropped, err))
	default:
		a.endLater(EndUnknown, store.CompleteRequest{}, err)
	}
	return err
}

// sayUnknown tells the store.
func (a *Attempt) sayUnknown(ctx context.Context, reason string) error {
	return a.engine.store.unknown(ctx, store.UnknownRequest{ID: a.id, Owner: a.owner, Reason: reason})
}

// overrunReason is the reason in the record of a handler that did not return within a
// lease after Config.MaxRun.
const overrunReason = "ran longer than MaxRun"
