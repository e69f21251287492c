package reprise

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"
)

// Attempt is one owned execution of an operation. Its owner runs the operation with [Attempt.Context] and then ends it once: by
// Complete or by Release, after which the other is refused. Nothing in it may be copied.
type Attempt struct {
	bid

	number int
	fence  uint64
	atomic bool
	stray  bool        // an earlier try of the claim may still be on its way
	ended  atomic.Bool // Complete or Release was called
	told   atomic.Bool // the observer knows that the lease was lost, or that it no longer matters

	run    runContext      // what the handler sees, before the store's Bind
	bound  context.Context // and after it
	tenure tenure          // the renewer's
	next   *Attempt        // in the table of flights, guarded by its row
	ending callContext     // of Complete or Release
}

func newAttempt(b *bid) *Attempt {
	a := &Attempt{bid: *b}
	a.run.attempt = a
	a.tenure.index = -1
	return a
}

// Context returns the context to run the operation with. It has the values of Begin's, and what the store binds to the
// claim, such as a transaction; it is cancelled with the cause [ErrLeaseLost] when the lease can no longer be counted on, with
// [ErrRunTooLong] after Config.MaxRun, and when the attempt has ended.
func (a *Attempt) Context() context.Context { return a.bound }

// View returns what a handler may know of the attempt.
func (a *Attempt) View() AttemptView { return AttemptView{a} }

// Atomic reports whether the effects commit together with the completion: then no part of the response may leave before
// Complete returned.
func (a *Attempt) Atomic() bool { return a.atomic }

// ID returns the operation's ID, for logs.
func (a *Attempt) ID() ID { return a.id }

// grant is a claim that this attempt was given, and how long to believe in it.
type grant struct {
	ClaimResult
	deadline, renewAt instant
}

// believe sets until when a lease that was asked for at sent is believed in, and when it is to be renewed.
func (g *grant) believe(sent instant, lease time.Duration) {
	g.deadline, g.renewAt = sent.add(localDeadline(lease)), renewAt(sent, lease)
}

// start runs the attempt of a bid that was granted. A claim that the store cannot bind is given up; mayHold says that an earlier try of it
// may still be on its way.
func (b *bid) start(g grant, mayHold bool) (Result, error) {
	e, a := b.engine, newAttempt(b)
	a.stray = mayHold
	bound, err := e.store.bind(&a.run, a.id, a.owner)
	if err != nil {
		b.report(Event{Kind: EventStoreError, Err: err})
		b.releaseLater()
		return Result{}, err
	}
	a.number, a.fence, a.atomic, a.bound = g.Attempt, g.Fence, g.Atomic, bound
	runUntil := never
	if e.cfg.MaxRun > 0 {
		runUntil = now().add(e.cfg.MaxRun)
	}
	if !e.renewer.add(e.base, a, g.deadline, g.renewAt, runUntil) { // Close gave up while the claim was on its way
		a.giveBack()
		return Result{}, ErrClosed
	}
	e.flights.enter(a)
	kind := EventClaimed
	if g.Attempt > 1 {
		kind = EventTakeover
	}
	a.observe(kind, nil)
	return Result{Outcome: Claimed, Attempt: a}, nil
}

// giveBack releases a claim that Begin was granted and that nobody will run.
func (a *Attempt) giveBack() {
	a.engine.also() // the release ends the attempt, and Begin ends too
	_ = a.Release() // it goes on in the background if it must
}

// observe tells the observer of what happened to the attempt.
func (a *Attempt) observe(kind EventKind, err error) {
	a.report(Event{Kind: kind, Attempt: a.number, Fence: a.fence, Err: err})
}

// conclude tells the observer how the attempt ended, and ends it.
func (a *Attempt) conclude(kind EventKind, err error) {
	a.told.Store(true)
	a.observe(kind, err)
	a.finish()
}

// observeLoss tells the observer, once, that the lease was lost.
func (a *Attempt) observeLoss() {
	if !a.told.Swap(true) {
		a.observe(EventLeaseLost, nil)
	}
}

// finish ends a running attempt: nothing keeps its lease, nothing in this process speaks for it, and its context ends.
func (a *Attempt) finish() {
	e := a.engine
	e.renewer.remove(a)
	e.flights.leave(a)
	a.run.cancel(context.Canceled)
	e.waitroom.wake(a.id)
	e.leave()
}

// end returns the context in which the store is asked to end the attempt, from now on.
func (a *Attempt) end() context.Context {
	ctx := a.engine.completing.context(now())
	if !a.hasValues() {
		return ctx
	}
	a.ending = callContext{Context: ctx, values: a.values}
	return &a.ending
}

// resolve makes sure that an attempt ends once.
func (a *Attempt) resolve() error {
	if a.ended.Swap(true) {
		return fmt.Errorf("%w: the attempt was ended before", ErrInvalid)
	}
	return nil
}
