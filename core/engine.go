package reprise

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
)

// Engine decides, over one [Store], which request runs an operation and which gets its answer. Make one per process and
// store with [New], and Close it when no request uses it any more. Its methods are safe for concurrent use.
type Engine struct {
	cfg      Config
	store    driver
	flights  flights
	renewer  *renewer
	waitroom waitroom

	claiming   budget // of Begin
	completing budget // of what a response waits for

	// base ends when Close has given up waiting, or nothing is left to wait for: it stops the renewer and the
	// background work.
	base context.Context
	stop context.CancelFunc

	active  atomic.Int64  // calls to Begin, attempts and background work that have not ended
	closed  atomic.Bool   // set by Close
	closing chan struct{} // closed by Close, for those who wait
	idle    chan struct{} // closed when active is 0 after that
	once    struct{ closing, idle sync.Once }
}

// New makes an engine over a store. It starts nothing. The error wraps [ErrInvalid] and names the field of cfg that is out of
// its range.
func New(store Store, cfg Config) (*Engine, error) {
	if store == nil {
		return nil, fmt.Errorf("%w: New without a store", ErrInvalid)
	}
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	e := &Engine{cfg: cfg, store: newDriver(store), closing: make(chan struct{}), idle: make(chan struct{})}
	e.claiming.d, e.completing.d = cfg.ClaimTimeout, cfg.CompleteTimeout
	e.base, e.stop = context.WithCancel(context.Background())
	e.renewer = newRenewer(&e.store, cfg.Lease, e.tell)
	e.waitroom.limits = cfg.Waiting
	return e, nil
}

// Result is the answer to [Engine.Begin].
type Result struct {
	Outcome Outcome
	Attempt *Attempt // of Claimed: run it, and end it by Complete or Release
	Payload []byte   // of Completed; nobody may modify it
}

// Begin claims op and says what to do with it. It takes one round trip to the store, or none when the answer is in this process.
//
// The claim is bounded by Config.ClaimTimeout and not by ctx: a client that leaves does not stop it. With op.Wait, Begin
// waits for another attempt to end until ctx ends or op.Wait has passed, and then answers InProgress. The context of the attempt
// carries the values of ctx, and neither its deadline nor its cancellation.
//
// An error means that there is no definite answer and nothing may run: [ErrInvalid] for an operation with a field out
// of its range, [ErrClosed] after Close, or the failure of the store. A claim that may have been written all the same
// is released in the background.
func (e *Engine) Begin(ctx context.Context, op Operation) (Result, error) {
	orDefault(&op.Retention, e.cfg.Retention)
	if err := op.validate(); err != nil {
		return Result{}, err
	}
	if !e.enter() {
		return Result{}, ErrClosed
	}
	res, err := e.begin(ctx, &op)
	if res.Attempt == nil {
		e.leave()
	}
	return res, err
}

// Close takes no new operations, waits until the attempts that run and the work in the background have ended, and stops what the
// engine started. When ctx ends first it stops all the same and returns an error that wraps the cause: handlers that still
// run are cancelled with [ErrLeaseLost], and their records lapse; they are not released. One that ends after that is
// recorded if the store takes it within Config.CompleteTimeout. Closing again waits again.
func (e *Engine) Close(ctx context.Context) error {
	e.also() // Close itself, so that nothing is idle before it has closed
	e.closed.Store(true)
	e.once.closing.Do(func() { close(e.closing) })
	e.leave()

	var err error
	select {
	case <-e.idle:
	case <-ctx.Done():
		if left := e.active.Load(); left > 0 {
			err = fmt.Errorf("reprise: closed with %d operations unfinished: %w", left, context.Cause(ctx))
		}
	}
	e.stop()
	e.claiming.stop()
	e.renewer.abandon()
	e.renewer.wait(ctx)
	return err
}

func (e *Engine) isClosing() bool {
	select {
	case <-e.closing:
		return true
	default:
		return false
	}
}

// enter counts one more thing for Close to wait for, unless the engine is closed.
func (e *Engine) enter() bool {
	e.active.Add(1) // first: what Close does not see counted, sees it closed
	if e.closed.Load() {
		e.leave()
		return false
	}
	return true
}

// also counts one more thing on behalf of one that is counted already, so that it may come after Close began.
func (e *Engine) also() { e.active.Add(1) }

func (e *Engine) leave() {
	if e.active.Add(-1) == 0 && e.closed.Load() {
		e.once.idle.Do(func() { close(e.idle) })
	}
}

// tell tells an attempt that it must not go on: its lease cannot be counted on, or it ran too long. Without a lease the
// table of this process no longer speaks for it.
func (e *Engine) tell(a *Attempt, cause error) {
	switch {
	case errors.Is(cause, ErrLeaseLost):
		e.flights.leave(a)
		e.waitroom.wake(a.id)
		a.run.cancel(cause)
		a.observeLoss()
	case !a.ended.Load(): // MaxRun bounds the handler, not the completion that follows it
		a.run.cancel(cause)
		a.observe(EventRunTooLong, nil)
	}
}
