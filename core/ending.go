package reprise

import (
	"bytes"
	"container/heap"
	"context"
	"errors"
	"fmt"

	"github.com/reprise-go/reprise/core/store"
)

// taken returns the end of an attempt for which the store took an end, and why it is
// another: a release may have come too late.
func (a *Attempt) taken(end AttemptEnd) (AttemptEnd, error) {
	if end != EndReleased {
		return end, nil
	}
	if a.over.Load() {
		a.reason = overrunReason
		return EndUnknown, errNotReturned
	}
	a.releaseLateTry()
	return EndReleased, nil
}

// releaseLateTry makes sure that an earlier try of the claim, which may still be on its
// way to the store, does not hold the key when it arrives.
func (a *Attempt) releaseLateTry() {
	if a.late {
		a.releaseLater(releaseLate, nil)
	}
}

// ending ends an attempt in the background:
//
//	repeated ──── the store takes it ────────► the attempt has ended so
//	   │   └───── it is of no use ───────────► dropped
//	   │ refused, or too old                      ▲   ▲
//	   ▼                                          │   │
//	expiring ──── the lease is lost ──────────────┘   │
//	   └───────── as repeated, but not for longer ────┘
//
// The lease is kept, and not renewed any more once it is expiring.
type ending struct {
	slot
	end      AttemptEnd            // if the store takes it: EndRecorded, EndReleased or EndUnknown
	request  store.CompleteRequest // of EndRecorded
	err      error                 // of the last try
	expiring bool                  // guarded by background.mu
}

// endLater leaves an end that failed with err to the background. Over the limits it is
// dropped: the lease is not renewed any more, and the claim lapses.
func (a *Attempt) endLater(end AttemptEnd, r store.CompleteRequest, err error) {
	a.settled = true
	e := &ending{slot: slot{attempt: a, size: int64(len(r.Payload))}, end: end, request: r, err: err}
	b := &a.engine.background
	f, _ := classify(err)
	switch {
	case !b.add(e, func() bool {
		e.request.Payload = bytes.Clone(r.Payload)
		a.task = e
		return true
	}):
		b.dropped.Add(1)
		a.conclude(EndDropped, dropError("the background is full", err))
	case f.refused:
		e.expire()
	}
}

func (e *ending) try(ctx context.Context) error {
	a := e.attempt
	switch e.end {
	case EndRecorded:
		return a.engine.store.complete(ctx, e.request)
	case EndUnknown:
		return a.sayUnknown(ctx, a.reason)
	default:
		return a.releaseOnce(ctx)
	}
}

func (e *ending) settle(ctx context.Context, err error) (again bool) {
	a := e.attempt
	if err != nil {
		why := e.giveUp(ctx, err, e.expire)
		if e.err = err; why == "" {
			return true
		}
		if errors.Is(err, store.ErrLeaseLost) && a.loseLease() {
			a.report(Event{Kind: EventLeaseLost})
		}
		e.drop(why)
		return false
	}
	a.concludeLater(a.taken(e.end))
	return false
}

// expire lets the lease of the attempt expire, and reports whether it is still relied on.
func (e *ending) expire() bool {
	b := &e.attempt.engine.background
	b.mu.Lock()
	e.expiring = true
	b.mu.Unlock()
	return e.attempt.engine.renewer.letExpire(e.attempt)
}

// leaseLost drops an ending that is expiring and does not run at the moment.
func (a *Attempt) leaseLost() {
	b := &a.engine.background
	b.mu.Lock()
	e, _ := a.task.(*ending)
	drop := e != nil && e.expiring && e.index >= 0
	if drop {
		heap.Remove(&b.tasks, e.index)
		b.remove(e)
	}
	b.mu.Unlock()
	if drop {
		e.drop(refusedTooLong)
	}
}

func (e *ending) drop(why string) {
	e.attempt.engine.background.dropped.Add(1)
	e.attempt.concludeLater(EndDropped, dropError(why, e.err))
}

const refusedTooLong = "the store refused it until the lease was lost"

// giveUp returns why a task is given up after a failure, and "" where it is repeated.
// Once the store refuses it, or it is too old, it is repeated while holds returns true.
func (s *slot) giveUp(ctx context.Context, err error, holds func() bool) (why string) {
	switch f, _ := classify(err); {
	case errors.Is(err, store.ErrLeaseLost):
		return "the lease was lost"
	case !f.repeatEnd || ctx.Err() != nil:
		return "it cannot be done"
	case !f.refused && !s.tooOld(), holds():
		return ""
	case f.refused:
		return refusedTooLong
	default:
		return "the store did not take it in time"
	}
}

// tooOld reports whether a task has been repeated for as long as the limit allows.
func (s *slot) tooOld() bool { return sinceStart()-s.since >= s.attempt.engine.cfg.Background.Age }

var errDropped = errors.New("reprise: end of an attempt dropped")

func dropError(why string, err error) error {
	if err == nil {
		return fmt.Errorf("%w: %s", errDropped, why)
	}
	return fmt.Errorf("%w: %s: %w", errDropped, why, err)
}

// orphan releases a claim that no attempt runs by:
//
//	releaseFirst ──► releaseLast, when the last try of the claim has arrived ──► released
//	releaseLate, likewise ──► its attempt was released before, so there is no event
//
// It is dropped as an ending is.
type orphan struct {
	slot // its attempt was made for it, or has ended
	step orphanStep
}

type orphanStep uint8

const (
	releaseFirst orphanStep = iota
	releaseLast
	releaseLate
)

// releaseLater releases a claim that no attempt runs by, because of err. Orphans
// may fill half of the background: a dropped one blocks its key for a lease at most, and
// a dropped completion may run an operation twice. Those that would block their keys for
// longer may fill another quarter.
func (a *Attempt) releaseLater(step orphanStep, err error) {
	b := &a.engine.background
	o := &orphan{slot{attempt: a, share: max(1, b.limits.Tasks/2)}, step}
	if step == releaseLate {
		o.due = a.engine.cfg.arrival()
	}
	if o.blocks() {
		o.share = max(1, b.limits.Tasks*3/4)
	}
	if !b.add(o, nil) {
		o.drop("the background is full", err)
	}
}

// blocks reports whether the claim, if it was written, refuses its key until the
// retention ends, because it is never taken over.
func (o *orphan) blocks() bool { return o.attempt.policy.AtMostOnce }

func (o *orphan) try(ctx context.Context) error {
	return o.attempt.engine.store.release(ctx, o.attempt.id, o.attempt.owner)
}

func (o *orphan) settle(ctx context.Context, err error) (again bool) {
	a := o.attempt
	switch {
	case errors.Is(err, store.ErrLeaseLost):
	case err != nil:
		why := o.giveUp(ctx, err, o.holds)
		if why == "" {
			return true
		}
		o.drop(why, err)
	case o.step == releaseFirst && ctx.Err() == nil:
		o.step, o.due = releaseLast, a.engine.cfg.arrival()
		return true
	case o.step != releaseLate:
		a.report(Event{End: EndReleased})
	}
	a.engine.waiters.wake(a.id)
	a.engine.work.done()
	return false
}

// holds reports whether the claim may still hold its key. One that blocks it is released
// although its lease is over.
func (o *orphan) holds() bool {
	if o.blocks() {
		return !o.tooOld()
	}
	cfg := &o.attempt.engine.cfg
	return sinceStart()-o.since <= cfg.Lease+cfg.ClaimTimeout
}

func (o *orphan) drop(why string, err error) {
	if o.blocks() {
		why += "; if the store wrote the claim, its key is refused until an operator resolves it or its retention ends"
	}
	o.attempt.engine.background.dropped.Add(1)
	o.attempt.report(Event{End: EndDropped, Err: dropError(why, err)})
}

// mark marks the record of a handler that did not return in time. It is repeated for as
// long as the handler runs, because without the mark another attempt could run beside it
// when the lease ends.
type mark struct{ slot }

// markLater takes over to mark the record of the attempt. It does nothing where there is
// no room, or such a task: the renewer, which keeps the lease until the record is marked,
// asks again.
func (a *Attempt) markLater() {
	b := &a.engine.background
	m := &mark{slot{attempt: a, share: max(1, b.limits.Tasks/2)}}
	b.add(m, func() bool {
		if a.task != nil || !a.running() {
			return false
		}
		a.task = m
		return true
	})
}

func (m *mark) try(ctx context.Context) error {
	a := m.attempt
	if !a.running() {
		return errMoot
	}
	a.marking.Store(true)
	err := a.sayUnknown(ctx, overrunReason)
	if err == nil {
		a.over.Store(true)
	}
	return err
}

func (m *mark) settle(ctx context.Context, err error) (again bool) {
	f, _ := classify(err)
	switch a := m.attempt; {
	case !a.open():
	case a.over.Load(): // the attempt itself ends with its handler: until then no operation runs beside it
		a.lost.Store(true)
		a.engine.renewer.remove(a)
		a.engine.waiters.wake(a.id)
		a.report(Event{End: EndUnknown, Reason: overrunReason})
	case errors.Is(err, store.ErrLeaseLost):
		if a.loseLease() {
			a.report(Event{Kind: EventLeaseLost})
		}
	case a.running() && f.repeatEnd && ctx.Err() == nil:
		return true
	}
	m.attempt.engine.work.done()
	return false
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

// releaseLater releases a claim that will not run, and releases it once more when the
// last of its tries has arrived. The call gets another owner, so that a claim that it
// makes later, as a waiting call does, is not released with this one.
func (c *call) releaseLater(err error) {
	newAttempt(c).releaseLater(releaseFirst, err)
	c.owner = store.NewOwner()
}
