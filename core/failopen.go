package reprise

import (
	"sync/atomic"
	"time"

	"github.com/reprise-go/reprise/core/store"
)

// outagePause is about how long operations that fail open do not ask a store that could
// not be reached.
const outagePause = time.Second

// outage remembers that the store could not be reached, so that operations that fail open
// do not wait for it one by one.
type outage struct {
	until atomic.Pointer[instant] // nil: there is none
}

// lasts reports whether to fail open without asking the store. When the pause is over,
// one caller is let through to find out.
func (o *outage) lasts(at instant) bool {
	until := o.until.Load()
	switch {
	case until == nil:
		return false
	case !at.reached(*until):
		return true
	}
	next := at.add(jitter(outagePause))
	return !o.until.CompareAndSwap(until, &next)
}

// begin starts the outage, or makes it last.
func (o *outage) begin(at instant) {
	until := at.add(jitter(outagePause))
	o.until.Store(&until)
}

// end is called when the store answered.
func (o *outage) end() {
	if o.until.Load() != nil {
		o.until.Store(nil)
	}
}

// startUnprotected starts an attempt without a claim: the store could not be reached,
// with err or a moment ago. Only the table of this process excludes others.
func (c *call) startUnprotected(err error) (Result, error) {
	a := newAttempt(c)
	a.unprotected, a.claimErr, a.bound = true, err, &a.run
	if !c.engine.renewer.add(c.engine.base, a, never, never, c.engine.runUntil()) {
		return Result{}, store.ErrClosed
	}
	return Result{Outcome: Unprotected, Attempt: a}, nil
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
