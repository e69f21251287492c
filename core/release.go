package reprise

import (
	"context"
	"errors"
	"fmt"

	"github.com/reprise-go/reprise/core/internal/bounds"
	"github.com/reprise-go/reprise/core/store"
)

// A claim is released in five places:
//
//	Attempt.Release         ends an attempt, so that the next request runs
//	Attempt.findMark        after that, where it may have come too late
//	Attempt.releaseUnrun    ends a granted attempt that will not run
//	call.releaseLater       in the background: a claim of unknown outcome, which will not run
//	Attempt.releaseLateTry  in the background: an earlier try of a claim that was released

// Release ends the attempt and gives up its claim, so that the next request runs. Call it
// before the result is sent. It is bounded and repeated as Complete is; an error other
// than [store.ErrInvalid] says that the release continues in the background, or, where to
// repeat it is useless, that the claim lapses. [ErrRunTooLong] says that it came too late
// (see Config.MaxRun), and [ErrTxEnded] that the effects may be permanent: the record
// says that the outcome is unknown, and stays.
func (a *Attempt) Release() error {
	if err := a.end(stateForgetting); err != nil {
		return err
	}
	if a.unprotected {
		a.conclude(EndUnrecorded, a.claimErr)
		return nil
	}
	return a.endEmpty(EndReleased, func(ctx context.Context) error { return a.repeat(ctx, a.releaseOnce) })
}

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
	if err := a.end(stateForgetting); err != nil {
		return err
	}
	if a.unprotected {
		a.conclude(EndUnrecorded, a.claimErr)
		return a.claimErr
	}
	if a.reason = bounds.Printable(reason, store.MaxReason); reason == "" {
		a.reason = "no reason given"
	}
	say := func(ctx context.Context) error { return a.sayUnknown(ctx, a.reason) }
	return a.endEmpty(EndUnknown, func(ctx context.Context) error {
		err := a.repeat(ctx, say)
		if !errors.Is(err, store.ErrLeaseLost) {
			return err
		}
		switch holder, err := a.holder(ctx); {
		case err != nil:
			return err
		case holder.Outcome == store.Claimed: // the record itself was lost, and is this attempt's anew
			return a.repeat(ctx, say)
		default:
			a.conclude(endOfLost(holder.Outcome), store.ErrLeaseLost)
			return store.ErrLeaseLost
		}
	})
}

// endEmpty ends the attempt without a result, by what ask asks of the store.
func (a *Attempt) endEmpty(end AttemptEnd, ask func(context.Context) error) error {
	defer func() {
		if !a.settled { // the store or an observer ended the goroutine
			a.endLater(end, store.CompleteRequest{}, errNoReturn)
		}
	}()
	ctx := a.completionContext()
	if a.tx != nil && a.closeTx() {
		if err := a.rollback(ctx); errors.Is(err, store.ErrMisconfigured) && end == EndReleased { // else the record says it anyway
			return a.endedByHandler(ctx, err).Err
		}
	}
	err := ask(ctx)
	f, _ := classify(err)
	switch {
	case a.settled:
	case err == nil:
		end, err = a.taken(end)
		a.conclude(end, err)
	case !f.repeatEnd:
		a.conclude(EndDropped, fmt.Errorf("%w: %w", errDropped, err))
	default:
		a.endLater(end, store.CompleteRequest{}, err)
	}
	return err
}
