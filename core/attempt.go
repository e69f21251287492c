package reprise

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/reprise-go/reprise/core/store"
)

// Attempt is one owned execution of an operation. Its owner runs the operation with
// [Attempt.Context] and then ends it once: by Complete, Release or Unknown, after which
// the others are refused. An attempt must not be copied.
type Attempt struct {
	call

	number      int
	fence       uint64
	unprotected bool   // no store granted it
	claimErr    error  // why it is unprotected
	reason      string // why its outcome is unknown
	late        bool   // an earlier try of the claim may still arrive
	unrun       bool   // Begin did not return it, so that its end is not counted
	settled     bool   // it has ended, or the background ends it; of the goroutine that ends it

	started time.Duration // when Begin returned it, by the monotonic clock; 0 if no observer asks
	ending  time.Duration // when its end was asked for; 0 before

	state   atomic.Uint32 // of attemptState
	lost    atomic.Bool   // the observer was notified that the lease was lost, or need not be any more
	over    atomic.Bool   // its record says that it ran too long, and that its outcome is unknown
	marking atomic.Bool   // it may say so

	tx         store.Transaction // of its handler; nil if the operation is not Transactional
	run        runContext        // the handler's context, without that transaction
	bound      context.Context   // and with it
	after      context.Context   // of work after the request: see call.detached
	lease      leaseState        // the renewer's
	next       *Attempt          // in its row of the table, which guards it
	completion callContext       // of its end
	task       task              // of the background, which guards it: that ends or marks it
}

// The states of an attempt, in order.
const (
	stateRunning    = iota
	stateReturned   // its handler has returned
	stateCompleting // the first in which it has been ended
	stateReleasing
	stateUnknown
)

func newAttempt(c *call) *Attempt {
	a := &Attempt{call: *c, after: c.detached()}
	a.run.attempt = a
	a.lease.index = -1
	return a
}

// Context returns the context to run the operation with. It has the values of Begin's,
// and those of the transaction of a transactional operation. It is cancelled
// with the cause [store.ErrLeaseLost] when the lease can no longer be relied on, with
// [ErrRunTooLong] after Config.MaxRun, and when the attempt has ended. See
// [Attempt.Returned].
func (a *Attempt) Context() context.Context { return a.bound }

// View returns the handler's view of the attempt.
func (a *Attempt) View() AttemptView { return AttemptView{a} }

// Transactional reports whether effects may commit together with the completion (see
// [Operation]): then no part of the result may be sent before Complete returned.
func (a *Attempt) Transactional() bool { return a.tx != nil }

// Unprotected reports whether the attempt runs without a claim, because
// [Operation.FailOpen] allows it. Its result is not recorded; end it by Release, or by
// Complete, which returns why there is no claim.
func (a *Attempt) Unprotected() bool { return a.unprotected }

// ID returns the operation's ID, for logs.
func (a *Attempt) ID() store.ID { return a.id }

// Returned says that the handler has returned. Config.MaxRun ends there: the work of its
// caller before the end of the attempt, such as the upload of a long result, may take any
// time, and the lease is kept meanwhile. Complete, Release and Unknown imply it. It is a
// no-op for an attempt that has returned or ended.
func (a *Attempt) Returned() { a.state.CompareAndSwap(stateRunning, stateReturned) }

// Cancelled returns the cause with which the engine cancelled the context of an attempt
// that has not ended: [ErrLeaseLost] or [ErrRunTooLong]. It is nil if it did not.
func (a *Attempt) Cancelled() error {
	if !a.open() {
		return nil
	}
	a.run.mu.Lock()
	defer a.run.mu.Unlock()
	return a.run.cause
}

// running reports whether the handler may still run.
func (a *Attempt) running() bool { return a.state.Load() == stateRunning }

// open reports whether the attempt has not been ended.
func (a *Attempt) open() bool { return a.state.Load() < stateCompleting }

// loseLease stops an attempt whose lease is no longer reliable, and reports whether the
// observer is to be notified. An attempt that is being released is not stopped: its claim
// may be gone because it was released. Nor is one whose outcome is unknown, likewise.
func (a *Attempt) loseLease() (notify bool) {
	a.engine.waiters.wake(a.id)
	if state := a.state.Load(); state == stateReleasing || state == stateUnknown {
		return false
	}
	a.run.cancel(store.ErrLeaseLost)
	return !a.lost.Swap(true)
}

// runTooLong cancels a handler that exceeded Config.MaxRun, and reports whether the
// observer is to be notified. MaxRun bounds the handler, and no step after it.
func (a *Attempt) runTooLong() (notify bool) {
	if !a.running() {
		return false
	}
	a.run.cancel(ErrRunTooLong)
	return true
}

// observe notifies the observer, with the values of the request, of an event of the
// attempt that is not counted. It is called by the request's own goroutine.
func (a *Attempt) observe(e Event) {
	e.Attempt, e.Fence = a.number, a.fence
	a.call.observe(e)
}

// report queues an event for the observer that is not counted. It is for everything that
// no request waits for.
func (a *Attempt) report(e Event) {
	o := &a.engine.observing
	if !o.wants(&e) {
		return
	}
	e.Attempt, e.Fence = a.number, a.fence
	a.describe(&e)
	o.queue(a.after, e)
}
