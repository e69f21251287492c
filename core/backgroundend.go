package reprise

import (
	"container/heap"
	"context"
	"errors"

	"github.com/reprise-go/reprise/core/store"
)

// errMoot says that the store was not asked: the handler whose record was to be marked
// has returned, and its end says more.
var errMoot = errors.New("reprise: nothing to do")

// run makes one try, and reports its failure.
func (b *background) run(ctx context.Context, t *task) error {
	err := apart(func() error { return b.try(ctx, t) })
	if err != nil && !errors.Is(err, store.ErrLeaseLost) && !errors.Is(err, store.ErrClosed) && !errors.Is(err, errMoot) {
		t.attempt.report(Event{Kind: EventStoreError, Err: err})
	}
	return err
}

// try asks the store once.
//
//nolint:contextcheck // a callContext inherits
func (b *background) try(ctx context.Context, t *task) error {
	if err := ctx.Err(); err != nil {
		return store.ErrClosed
	}
	a, st := t.attempt, &b.engine.store
	ctx, cancel := context.WithTimeout(ctx, b.engine.cfg.CompleteTimeout)
	defer cancel()
	ctx = &callContext{Context: ctx, values: a.after}
	switch t.kind {
	case taskComplete:
		return st.complete(ctx, t.request)
	case taskUnknown:
		return a.sayUnknown(ctx, a.reason)
	case taskOverrun:
		if !a.running() {
			return errMoot
		}
		a.marking.Store(true)
		err := a.sayUnknown(ctx, overrunReason)
		if err == nil {
			a.over.Store(true)
		}
		return err
	case taskRelease:
		return a.releaseOnce(ctx)
	default:
		return st.release(ctx, a.id, a.owner)
	}
}

// apply applies the result of a try, and reports whether to repeat the task.
func (b *background) apply(ctx context.Context, t *task, err error) (again bool) {
	a := t.attempt
	f, _ := classify(err)
	why := ""
	switch {
	case t.kind == taskOverrun:
		return b.overran(ctx, t, err)
	case err == nil:
	case errors.Is(err, store.ErrLeaseLost):
		why = "the lease was lost"
	case !f.repeatEnd || ctx.Err() != nil:
		why = "it cannot be done"
	case f.refused:
		if b.refuse(t) {
			t.err = err
			return true
		}
		why = refusedTooLong
	default:
		if !b.tooOld(t) || b.refuse(t) {
			t.err = err
			return true
		}
		why = "the store did not take it in time"
	}
	switch {
	case t.kind == taskReleaseUnknown:
		if err != nil && !errors.Is(err, store.ErrLeaseLost) {
			b.drop(t, err, why)
		}
		return b.unknownReleased(ctx, t, err)
	case err == nil && t.kind == taskComplete:
		a.concludeLater(EndRecorded, nil)
	case err == nil && t.kind == taskUnknown:
		a.concludeLater(EndUnknown, nil)
	case err == nil && a.over.Load():
		a.reason = overrunReason
		a.concludeLater(EndUnknown, errNotReturned)
	case err == nil:
		a.releaseLateTry()
		a.concludeLater(EndReleased, nil)
	default:
		if errors.Is(err, store.ErrLeaseLost) && a.loseLease() {
			a.report(Event{Kind: EventLeaseLost})
		}
		b.drop(t, err, why)
	}
	return false
}

// overran applies the result of a try to mark the record of a handler that runs too long,
// and reports whether to repeat it: for as long as the handler runs, because without the
// mark another attempt could run beside it when the lease ends.
func (b *background) overran(ctx context.Context, t *task, err error) (again bool) {
	f, _ := classify(err)
	switch a := t.attempt; {
	case !a.open():
	case a.over.Load():
		a.overrun()
	case errors.Is(err, store.ErrLeaseLost):
		if a.loseLease() {
			a.report(Event{Kind: EventLeaseLost})
		}
	case a.running() && f.repeatEnd && ctx.Err() == nil:
		return true
	}
	b.engine.work.done()
	return false
}

const refusedTooLong = "the store refused it until the lease was lost"

// unknownReleased ends a task of kind taskReleaseUnknown, or asks for its second release.
func (b *background) unknownReleased(ctx context.Context, t *task, err error) (again bool) {
	a := t.attempt
	if err == nil && t.twice && ctx.Err() == nil {
		t.twice, t.due = false, b.engine.arrival()
		return true
	}
	b.engine.waiters.wake(a.id)
	if err == nil && !t.silent {
		a.report(Event{End: EndReleased})
	}
	b.engine.work.done()
	return false
}

// tooOld reports whether a task has been repeated for as long as the limit allows.
func (b *background) tooOld(t *task) bool { return sinceStart()-t.since >= b.limits.Age }

// refuse notes that the store refuses a task for good, and reports false when to repeat
// it is useless: its claim has lapsed by now. From the first refusal on its lease is not
// renewed. A lapsed claim that blocks its key is released even so.
func (b *background) refuse(t *task) (ok bool) {
	switch {
	case t.blocks():
		return !b.tooOld(t)
	case t.kind == taskReleaseUnknown:
		return sinceStart()-t.since <= b.engine.cfg.Lease+b.engine.cfg.ClaimTimeout
	}
	b.mu.Lock()
	t.refused = true
	b.mu.Unlock()
	return b.engine.renewer.letExpire(t.attempt)
}

// leaseLost drops the task of an attempt, if the store refuses it and it does not run at
// the moment.
func (b *background) leaseLost(a *Attempt) {
	b.mu.Lock()
	t := a.task
	drop := t != nil && t.refused && t.index >= 0
	if drop {
		heap.Remove(&b.tasks, t.index)
		b.remove(t)
	}
	b.mu.Unlock()
	if drop {
		b.drop(t, t.err, refusedTooLong)
	}
}

// drop counts and reports a task that is given up because of err. Its attempt, if it had
// one that Begin returned, has ended.
func (b *background) drop(t *task, err error, why string) {
	t.err = err
	b.dropped.Add(1)
	if t.kind == taskReleaseUnknown {
		t.attempt.report(Event{End: EndDropped, Err: t.dropError(why)})
	} else {
		t.attempt.concludeLater(EndDropped, t.dropError(why))
	}
}
