package reprise

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/reprise-go/reprise/core/internal/digest"
	"github.com/reprise-go/reprise/core/store"
)

// Attempt is one owned execution of an operation. Its owner runs the operation with
// [Attempt.Context] and then ends it once: by Complete, Release or Unknown, after which
// the others are refused. An attempt must not be copied.
type Attempt struct {
	call

	number   int
	fence    uint64
	claimErr error  // why it is unprotected
	reason   string // why its outcome is unknown

	started time.Duration // when Begin returned it, by the monotonic clock; 0 if no observer asks
	ending  time.Duration // when its end was asked for; 0 before

	unprotected bool // no store granted it
	late        bool // an earlier try of the claim may still arrive
	unrun       bool // Begin did not return it, so that its end is not counted
	settled     bool // it has ended, or the background ends it; of the goroutine that ends it

	state   atomic.Uint32 // of attemptState
	lost    atomic.Bool   // the observer was notified that the lease was lost, or need not be any more
	over    atomic.Bool   // its record says that it ran too long, and that its outcome is unknown
	marking atomic.Bool   // it may say so

	tx         *transaction    // of its handler; nil if the operation is not Transactional
	run        runContext      // the handler's context, without that transaction
	after      context.Context // of work after the request: see call.detached
	lease      leaseState      // the renewer's
	next       *Attempt        // in its row of the table, which guards it
	completion callContext     // of its end
	task       task            // of the background, which guards it: that ends or marks it
}

// transaction is that of a handler, and the handler's context with it.
type transaction struct {
	store.Transaction

	run context.Context
}

// The states of an attempt, in order.
const (
	stateRunning    = iota
	stateReturned   // its handler has returned
	stateCompleting // the first in which it has been ended
	stateForgetting // its end may take its claim away: see loseLease
)

func newAttempt(c *call) *Attempt {
	a := &Attempt{call: *c, after: context.Background()}
	if c.engine.cfg.Detach != nil {
		a.after = c.detached()
	}
	a.run.attempt = a
	a.lease.index = -1
	return a
}

// Context returns the context to run the operation with. It has the values of Begin's,
// and those of the transaction of a transactional operation. It is cancelled
// with the cause [store.ErrLeaseLost] when the lease can no longer be relied on, with
// [ErrRunTooLong] after Config.MaxRun, and when the attempt has ended. See
// [Attempt.Returned].
func (a *Attempt) Context() context.Context {
	if a.tx != nil {
		return a.tx.run
	}
	return &a.run
}

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
// observer is to be notified. An attempt whose own end may take its claim away (release,
// unknown, and a commit, which may be rolled back) is not stopped: that may be why.
func (a *Attempt) loseLease() (notify bool) {
	a.engine.waiters.wake(a.id)
	if a.state.Load() == stateForgetting {
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

// The causes with which the context of a handler is cancelled before its attempt ends.
var (
	// ErrLeaseLost says that the lease of the attempt is lost: see [store.ErrLeaseLost].
	ErrLeaseLost = store.ErrLeaseLost

	// ErrRunTooLong says that the attempt ran longer than Config.MaxRun.
	ErrRunTooLong = errors.New("reprise: attempt ran longer than MaxRun")
)

// runContext is the context of a handler. It has the values of the request and neither
// its deadline nor its cancellation, and is cancelled when the attempt loses its lease or
// has ended. Most handlers return without a call of Done, so the cancellable context is
// made on first use.
type runContext struct {
	attempt *Attempt

	mu    sync.Mutex
	cause error        // of the first cancellation
	inner *cancellable // nil until Done is called
}

// cancellable is a context that its owner cancels.
type cancellable struct {
	context.Context

	cancel context.CancelCauseFunc
}

// cancellable returns the cancellable context, and makes it on first use.
func (c *runContext) cancellable() context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.inner == nil {
		ctx, cancel := context.WithCancelCause(context.WithoutCancel(c.attempt.values))
		c.inner = &cancellable{ctx, cancel}
		if c.cause != nil {
			cancel(c.cause)
		}
	}
	return c.inner.Context
}

func (c *runContext) cancel(cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cause != nil {
		return
	}
	c.cause = cause
	if c.inner != nil {
		c.inner.cancel(cause)
	}
}

// made returns the cancellable context if it was made or is cancelled, and nil otherwise.
func (c *runContext) made() context.Context {
	c.mu.Lock()
	needed := c.inner != nil || c.cause != nil
	c.mu.Unlock()
	if !needed {
		return nil
	}
	return c.cancellable()
}

// Deadline implements [context.Context]: an attempt has none.
func (c *runContext) Deadline() (time.Time, bool) { return time.Time{}, false }

// Done implements [context.Context].
func (c *runContext) Done() <-chan struct{} { return c.cancellable().Done() }

// Err implements [context.Context].
func (c *runContext) Err() error {
	if inner := c.made(); inner != nil {
		return inner.Err()
	}
	return nil
}

// Value implements [context.Context].
func (c *runContext) Value(key any) any {
	if key == (attemptKey{}) {
		return c.attempt
	}
	if inner := c.made(); inner != nil {
		return inner.Value(key)
	}
	value := c.attempt.values.Value(key)
	if _, ok := value.(context.Context); ok { // package context asks which parent cancels this one
		return c.cancellable().Value(key)
	}
	return value
}

type attemptKey struct{}

// ErrNoAttempt says that a context is not that of a run: see [AttemptView.Key].
var ErrNoAttempt = errors.New("reprise: no attempt in this context: the request has no key, or nothing of this module runs its handler, or the context is not the handler's")

// AttemptView is a handler's view of its attempt. It stays valid after the attempt. The
// zero value is a view of none: each method documents its result for that. It is safe for
// concurrent use.
type AttemptView struct{ a *Attempt }

// AttemptFrom returns the attempt of the handler with this context, and false, with a
// view of none, outside of an attempt: such a handler runs once for each request. ctx may
// be the context of the handler's framework, see [store.ContextKey].
func AttemptFrom(ctx context.Context) (AttemptView, bool) {
	a, ok := ctx.Value(attemptKey{}).(*Attempt)
	if !ok {
		if run, found := store.RunContext(ctx); found {
			a, ok = run.Value(attemptKey{}).(*Attempt)
		}
	}
	return AttemptView{a}, ok
}

// Number returns 1 for the first attempt and one more for every takeover. If it is more
// than 1, an earlier attempt may have applied its effects. 1 does not prove that none
// has: a takeover that was released, because its handler failed or because the reply to
// its claim was lost, leaves no record of the attempt before it. Give downstream calls
// that must not be repeated a [AttemptView.Key]. It is 0 for an unprotected attempt, and
// for none.
func (v AttemptView) Number() int {
	if v.a == nil {
		return 0
	}
	return v.a.number
}

// Fence returns a number that grows with every attempt on the operation while the store
// keeps its record. A resource that remembers the highest it saw can refuse a stale
// attempt. It is 0 for an unprotected attempt, and for none.
//
// On Redis and PostgreSQL it comes from the clock of the server. Where that is set back
// after the record was released or purged, the next fence of the key can be lower, and
// such a resource refuses the attempt until the clock has caught up.
func (v AttemptView) Fence() uint64 {
	if v.a == nil {
		return 0
	}
	return v.a.fence
}

// ID returns the operation's ID, for logs. It is the zero ID for no attempt.
func (v AttemptView) ID() store.ID {
	if v.a == nil {
		return store.ID{}
	}
	return v.a.id
}

// Key returns the idempotency key for one downstream call of this operation, the same in
// every attempt, an unprotected one included. Give each call its own name. It is a UUID
// (version 8) derived from the operation and its request, and does not reveal the
// client's key. Layout, version 1: the first 16 bytes of
//
//	SHA-256("reprise/downstream/1\0" ‖ ID ‖ fingerprint ‖ u64(len name) ‖ name)
//
// with the UUID's version and variant bits set.
//
// Without an attempt no two requests are known to be the same, so that there is no key to
// derive: the error is [ErrNoAttempt]. Where the key is optional, such a handler makes a
// new key for each request.
func (v AttemptView) Key(name string) (string, error) {
	if v.a == nil {
		return "", ErrNoAttempt
	}
	return digest.DownstreamKey(v.a.id, v.a.fingerprint, name), nil
}
