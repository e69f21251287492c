package reprise

import "context"

// Three things release a claim:
//
//	Attempt.Release   ends an attempt so that the next request runs
//	Attempt.giveBack  ends one that was granted and that nobody will run
//	call.forgetLater  forgets, in the background, a claim that may have been granted

// Release ends the attempt and forgets its claim, so that the next request runs. Call it before the
// response leaves. It is bounded and repeated as Complete is; an error other than [ErrInvalid] says that
// the release goes on in the background, or, where repeating is of no use, that the claim lapses.
func (a *Attempt) Release() error {
	if err := a.end(stateReleasing); err != nil {
		return err
	}
	if a.unprotected {
		a.finish()
		return nil
	}
	err := a.repeat(a.completionContext(), func(ctx context.Context) error {
		return a.engine.store.release(ctx, a.id, a.owner)
	})
	f, _ := classify(err)
	switch {
	case err == nil:
		a.forgetLateTry()
		a.conclude(EventReleased, nil)
	case a.atomic || !f.repeatEnd:
		a.finish()
	default:
		a.engine.background.add(&task{kind: taskRelease, attempt: a, err: err})
	}
	return err
}

// forgetLateTry makes sure that an earlier try of the claim, which may still be on its way to the
// store, holds nothing when it arrives.
func (a *Attempt) forgetLateTry() {
	if a.late {
		a.engine.background.addForget(&task{kind: taskForget, attempt: a, due: a.engine.arrival(), silent: true})
	}
}

// forgetLater forgets a claim that nobody runs: in the background, and once more when the last of its
// tries has arrived. The call gets another owner, so that a claim that it makes later, as one that waits
// does, is not forgotten with this one.
func (c *call) forgetLater(err error) {
	c.engine.background.addForget(&task{kind: taskForget, attempt: newAttempt(c), twice: true, err: err})
	c.owner = NewOwner()
}

// arrival returns when a claim that is on its way now has arrived at the store.
func (e *Engine) arrival() instant { return now().add(e.cfg.ClaimTimeout) }
