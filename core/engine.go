package reprise

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/reprise-go/reprise/core/internal/bounds"
	"github.com/reprise-go/reprise/core/store"
)

// Store keeps the records of an [Engine]: see [store.Store], the contract.
type Store = store.Store

// Engine decides, over one [Store], which request runs an operation and which gets its
// answer. Make one per process and store with [New], and Close it when no request uses it
// any more. Its methods are safe for concurrent use.
type Engine struct {
	cfg         Config
	store       driver
	table       table
	renewer     *renewer
	waiters     waiters
	background  background
	maintenance recurring
	counting    recurring
	stuck       stuckCounter
	observing   observing
	tallies     tallies

	sharedClaims atomic.Uint64

	claiming   budget // of Begin
	completing budget // of the work that a result waits for

	// base ends when Close has given up waiting, or all work has ended: it stops the
	// renewer, the background and the maintenance.
	base context.Context
	stop context.CancelFunc

	work openWork
}

// New makes an engine over a store. It starts no goroutine. The error wraps
// [store.ErrInvalid] and names the field of cfg that is out of its range. An engine whose
// MaxRun is unset logs the default.
func New(st store.Store, cfg Config) (*Engine, error) {
	if st == nil {
		return nil, fmt.Errorf("%w: New: the store is nil", store.ErrInvalid)
	}
	unsaid := cfg.MaxRun == 0
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	e := &Engine{cfg: cfg, store: newDriver(st)}
	e.observing.observer, e.observing.log.log = cfg.Observer, cfg.Log
	if unsaid {
		e.observing.log.logger().Info("reprise: handlers are cancelled after MaxRun; set reprise.Config.MaxRun, or -1 for no bound", slog.Duration("max_run", cfg.MaxRun))
	}
	e.work.closing, e.work.idle = make(chan struct{}), make(chan struct{})
	e.claiming.d, e.completing.d = cfg.ClaimTimeout, cfg.CompleteTimeout
	e.base, e.stop = context.WithCancel(context.Background())
	e.renewer = newRenewer(&e.store, cfg.Lease)
	e.waiters.limits = cfg.Waiting
	e.background = background{base: e.base, work: &e.work, timeout: cfg.CompleteTimeout, limits: cfg.Background, wake: make(chan struct{}, 1)}
	e.maintenance.done, e.counting.done = make(chan struct{}), make(chan struct{})
	e.stuck.init(st, e)
	return e, nil
}

// Config returns the configuration of the engine with its defaults filled in.
func (e *Engine) Config() Config { return e.cfg }

// Transacts returns nil if the engine's store can give handlers transactions, and
// otherwise ErrInvalid with the reason: see [Operation].Transactional.
func (e *Engine) Transacts() error {
	if e.store.transactor == nil {
		return fmt.Errorf("%w: the store has no transactions for handlers: use one in an SQL database", store.ErrInvalid)
	}
	return e.store.transactor.Transacts()
}

// Result is the result of [Engine.Begin].
type Result struct {
	Outcome Outcome
	Attempt *Attempt // of Claimed and Unprotected: run it, and end it by Complete or Release
	Payload []byte   // of Replayed; it must not be modified

	// Remaining, of InProgress, is the rest of the other attempt's lease, from the store. It
	// is zero where the store was not asked, because the attempt runs in this process or
	// another call asked a moment ago.
	Remaining time.Duration

	unread subject // of Replayed, where Read is to be called
}

// Begin claims op and returns how to go on. It takes one round trip to the store, or none
// when this process knows the outcome: simultaneous duplicates share one claim.
//
// The claim is bounded by Config.ClaimTimeout and not by ctx: a client disconnect does
// not cancel it. With op.Wait, Begin waits for another attempt to end until ctx ends or
// op.Wait has passed, and then returns InProgress. Inside of a run of op itself, with a
// context of that run, it returns InProgress at once, or Mismatch for another
// fingerprint. The context of the attempt carries the values of ctx, and neither its
// deadline nor its cancellation.
//
// An error means that the outcome is unknown and the operation must not run. The outcome
// is then KeyMissing for an operation without a key and Failed for one with another field
// out of its range, both with [store.ErrInvalid], Corrupt for a record that cannot be
// read, and otherwise Unavailable: the failure of the store, or [store.ErrClosed] after
// Close. A claim that may have been written anyway is released in the background.
func (e *Engine) Begin(ctx context.Context, op Operation) (res Result, err error) {
	orDefault(&op.Retention, e.cfg.Retention)
	outcome, err := Failed, op.validate()
	switch {
	case err != nil:
	case op.Transactional && e.Transacts() != nil:
		err = fmt.Errorf("Operation.Transactional: %w", e.Transacts())
	case op.Key == "":
		outcome, err = KeyMissing, fmt.Errorf("%w: Operation.Key is empty", store.ErrInvalid)
	}
	if err != nil {
		e.Refuse(ctx, op.Label, outcome, err)
		return Result{Outcome: outcome}, err
	}
	if !e.work.begin() {
		e.Refuse(ctx, op.Label, Unavailable, store.ErrClosed)
		return Result{Outcome: Unavailable}, store.ErrClosed
	}
	defer func() { // also when the store ends the goroutine
		if res.Attempt == nil {
			e.work.done()
		}
	}()
	e.maintain()
	return e.begin(ctx, &op)
}

// maintain starts the maintenance of the store.
func (e *Engine) maintain() { e.maintenance.start(e.base, &e.observing.log, e.store.maintain) }

// Refuse counts a request that its caller refuses before Begin, under the label of the
// policy, and notifies the observer of it. err says why, and may be nil. Call it from the
// goroutine of the request.
func (e *Engine) Refuse(ctx context.Context, label string, outcome Outcome, err error) {
	if outcome < 1 || int(outcome) >= len(outcomeNames) {
		outcome = Failed
	}
	if bounds.Label("label", label) != nil {
		label = ""
	}
	e.tallies.of(label).outcome(outcome)
	event := Event{Outcome: outcome, Counted: true, Label: label, Err: err}
	if e.observing.wants(&event) {
		e.observing.notify(ctx, event)
	}
}

// Close takes no new operations, waits until the attempts that run and the work in the
// background have ended, and stops the engine's goroutines. When ctx ends first it stops
// anyway and returns an error that wraps the cause: handlers that still run are cancelled
// with [store.ErrLeaseLost], and their records lapse; they are not released. An attempt
// that ends after that is recorded if the store takes it within Config.CompleteTimeout.
// Closing again waits again.
func (e *Engine) Close(ctx context.Context) error {
	e.work.close()
	e.background.look()
	var err error
	select {
	case <-e.work.idle:
	case <-ctx.Done():
		if left := e.work.count.Load(); left > 0 {
			err = fmt.Errorf("reprise: closed with unfinished operations (%d): %w", left, context.Cause(ctx))
		}
	}
	e.stop()
	e.claiming.stop()
	e.renewer.abandon()
	e.renewer.wait(ctx)
	e.maintenance.wait(ctx)
	e.counting.wait(ctx)
	e.observing.wait(ctx)
	return err
}

// runUntil returns until when a handler that starts now may run.
func (e *Engine) runUntil() instant {
	if e.cfg.MaxRun == unboundedRun {
		return never
	}
	return now().add(e.cfg.MaxRun)
}

// arrival returns when a claim that is on its way now has arrived at the store.
func (e *Engine) arrival() instant { return now().add(e.cfg.ClaimTimeout) }

// openWork counts the work that Close waits for: calls to Begin, attempts, and tasks in
// the background.
type openWork struct {
	count   atomic.Int64
	closed  atomic.Bool
	closing chan struct{} // closed by close
	idle    chan struct{} // closed when the count is 0 after that
	once    struct{ closing, idle sync.Once }
}

// begin counts one more piece of work, unless close was called.
func (w *openWork) begin() bool {
	w.count.Add(1) // first: work that close does not see counted must see it closed
	if w.closed.Load() {
		w.done()
		return false
	}
	return true
}

// retain adds a reference for work that is counted already, so it is allowed after close.
func (w *openWork) retain() { w.count.Add(1) }

// done takes back one begin or retain.
func (w *openWork) done() {
	if w.count.Add(-1) == 0 && w.closed.Load() {
		w.once.idle.Do(func() { close(w.idle) })
	}
}

// close refuses new work from now on. It may be called more than once.
func (w *openWork) close() {
	w.retain() // never idle before it has closed
	w.closed.Store(true)
	w.once.closing.Do(func() { close(w.closing) })
	w.done()
}

func (w *openWork) isClosing() bool {
	select {
	case <-w.closing:
		return true
	default:
		return false
	}
}

// recurring is work of an engine with a goroutine, which starts when it is first needed
// and ends in Close: the maintenance of a store, and the count of its stuck records.
type recurring struct {
	started atomic.Bool
	done    chan struct{} // closed when the goroutine has ended
}

// start starts the goroutine unless it was started before, or there is no work. It ends
// with ctx.
func (r *recurring) start(ctx context.Context, log *operatorLog, work func(context.Context)) {
	if work == nil || r.started.Load() || !r.started.CompareAndSwap(false, true) {
		return
	}
	go r.run(ctx, log, work)
}

func (r *recurring) run(ctx context.Context, log *operatorLog, work func(context.Context)) {
	defer close(r.done)
	returned := false
	defer func() {
		if p := recover(); p != nil {
			log.logger().ErrorContext(ctx, "reprise: the maintenance of the store panicked and has ended", slog.Any("panic", p))
		} else if !returned {
			log.logger().ErrorContext(ctx, "reprise: the maintenance of the store ended its goroutine")
		}
	}()
	work(ctx)
	returned = true
}

// wait returns when the goroutine, whose context has ended, has gone, or when ctx ends.
func (r *recurring) wait(ctx context.Context) {
	if !r.started.Load() {
		return
	}
	select {
	case <-r.done:
	case <-ctx.Done():
	}
}
