package reprise

import "github.com/reprise-go/reprise/core/store"

// startUnprotected starts an attempt without a claim: the store could not be reached,
// with err. Only the table of this process excludes others.
func (c *call) startUnprotected(err error) (Result, error) {
	a := newAttempt(c)
	a.unprotected, a.claimErr, a.bound = true, err, &a.run
	if !c.engine.renewer.add(c.engine.base, a, never, never, c.engine.runUntil()) {
		return Result{}, store.ErrClosed
	}
	return Result{Outcome: Unprotected, Attempt: a}, nil
}

// answerUnreachable returns what a call of a policy that fails open knows of its key
// itself, where the store could not be reached with err. It is not ok where it knows
// nothing.
func (c *call) answerUnreachable(err error) (res Result, ok bool) {
	f, _ := classify(err)
	return Result{Outcome: c.seen}, c.failOpen && c.seen != 0 && f.unreachable
}

// discard ends an attempt that the table turned away. The call to Begin continues without
// it.
func (a *Attempt) discard() {
	switch {
	case a == nil:
	case a.unprotected:
		a.engine.renewer.remove(a)
	default:
		a.releaseUnrun() // its claim was granted
	}
}
