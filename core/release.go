package reprise

import (
	"context"
	"fmt"

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
// repeat it is useless, that the claim lapses. [ErrRunTooLong] says that it came too
// late: the record says that the outcome is unknown (see Config.MaxRun), and stays.
func (a *Attempt) Release() error {
	if err := a.end(stateReleasing); err != nil {
		return err
	}
	if a.unprotected {
		a.conclude(EndUnrecorded, a.claimErr)
		return nil
	}
	defer func() {
		if !a.settled { // the store or an observer ended the goroutine
			a.endLater(EndReleased, store.CompleteRequest{}, errNoReturn)
		}
	}()
	ctx := a.completionContext()
	if a.closeTx() {
		a.rollback(ctx)
	}
	err := a.repeat(ctx, a.releaseOnce)
	f, _ := classify(err)
	switch {
	case err == nil && a.over.Load():
		a.reason, err = overrunReason, errNotReturned
		a.conclude(EndUnknown, err)
	case err == nil:
		a.releaseLateTry()
		a.conclude(EndReleased, nil)
	case !f.repeatEnd:
		a.conclude(EndDropped, fmt.Errorf("%w: %w", errDropped, err))
	default:
		a.endLater(EndReleased, store.CompleteRequest{}, err)
	}
	return err
}

// releaseOnce asks the store once. To release a record that was marked meanwhile is no
// error, and has no effect.
func (a *Attempt) releaseOnce(ctx context.Context) error {
	err := a.engine.store.release(ctx, a.id, a.owner)
	if err != nil || a.over.Load() || !a.marking.Load() {
		return err
	}
	return a.findMark(ctx)
}

// findMark finds out whether the record of a released attempt is still there, because it
// was marked before. It claims without takeover, for another owner: a mark that arrives
// only now then finds another owner's record.
func (a *Attempt) findMark(ctx context.Context) error {
	c := a.call
	c.owner, c.values, c.waiting = store.NewOwner(), a.after, false
	found, err := c.engine.store.claim(ctx, c.claimRequest(false))
	f, _ := classify(err)
	switch {
	case f.mayHold:
		c.releaseLater(err)
	case err == nil && found.Outcome == store.Lapsed:
		a.over.Store(true)
	case err == nil && found.Outcome == store.Claimed:
		if err := c.engine.store.release(ctx, c.id, c.owner); err != nil {
			c.releaseLater(err)
		}
	}
	return err
}

// releaseLateTry makes sure that an earlier try of the claim, which may still be on its
// way to the store, does not hold the key when it arrives.
func (a *Attempt) releaseLateTry() {
	if a.late {
		a.releaseLater(releaseLate, nil)
	}
}

// releaseLater releases a claim that will not run, and releases it once more when the
// last of its tries has arrived. The call gets another owner, so that a claim that it
// makes later, as a waiting call does, is not released with this one.
func (c *call) releaseLater(err error) {
	newAttempt(c).releaseLater(releaseFirst, err)
	c.owner = store.NewOwner()
}
