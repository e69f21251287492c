package reprise

import (
	"container/heap"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/reprise-go/reprise/core/store"
)

// renewer keeps the leases of all attempts of an engine. It is a heap of due times served
// by one goroutine, which starts with the first attempt and ends in Close; renewals go
// out as one batch per tick, never two at once. While a batch is out the goroutine goes
// on watching deadlines, so a store that hangs delays no handler's cancellation.
// Observers are notified from a queue, so neither do they.
type renewer struct {
	store *driver
	lease time.Duration

	mu       sync.Mutex
	due      schedule[*Attempt]
	overdue  []*Attempt // fell due while a batch was out: the next batch takes them
	started  bool
	ended    bool
	sleeping instant       // the goroutine looks again at this instant, unasked
	skew     time.Duration // of the clocks when it looked last
	wake     chan struct{} // asks it to look now
	done     chan struct{} // closed when the goroutine has ended
}

func newRenewer(store *driver, lease time.Duration) *renewer {
	return &renewer{
		store: store, lease: lease,
		skew: now().skew(), wake: make(chan struct{}, 1), done: make(chan struct{}),
	}
}

// add starts to keep a lease that is relied on until deadline. It reports false after
// abandon.
func (r *renewer) add(ctx context.Context, a *Attempt, deadline, renewAt, runUntil instant) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return false
	}
	a.lease = leaseState{renewAt: renewAt, deadline: deadline, runUntil: runUntil}
	a.lease.schedule()
	heap.Push(&r.due, a)
	if !r.started {
		r.started = true
		go r.serve(ctx)
	} else if a.lease.due.mono < r.sleeping.mono {
		signal(r.wake)
	}
	return true
}

// remove stops keeping the lease of a. It may have gone already.
func (r *renewer) remove(a *Attempt) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if a.lease.index >= 0 {
		heap.Remove(&r.due, a.lease.index)
	}
}

// holds reports whether the lease of a can be relied on.
func (r *renewer) holds(a *Attempt) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return a.lease.index >= 0 && !now().reached(a.lease.deadline)
}

// letExpire renews the lease of a no more, and reports whether it can still be relied on.
func (r *renewer) letExpire(a *Attempt) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := &a.lease
	if l.index < 0 {
		return false
	}
	l.expiring, l.renewAt = true, never
	l.schedule()
	heap.Fix(&r.due, l.index)
	return !now().reached(l.deadline)
}

// wait returns when the goroutine, whose own context has ended, has gone, or when ctx
// ends.
func (r *renewer) wait(ctx context.Context) {
	r.mu.Lock()
	started := r.started
	r.mu.Unlock()
	if started {
		await(ctx, r.done)
	}
}

// serve is the goroutine. It ends with ctx, when the batch that is out has its result.
func (r *renewer) serve(ctx context.Context) {
	defer close(r.done)
	timer := time.NewTimer(0)
	defer timer.Stop()
	renewed := make(chan struct{}, 1)
	out := false
	for {
		select {
		case <-ctx.Done():
			if out {
				<-renewed
			}
			return
		case <-timer.C:
		case <-r.wake:
		case <-renewed:
			out = false
		}
		sleep, batch := r.tick(out)
		if len(batch) > 0 {
			out = true
			go func() {
				r.renew(ctx, batch)
				renewed <- struct{}{}
			}()
		}
		timer.Reset(sleep)
	}
}

// abandon cancels every attempt that is left, since its lease is not kept any more, and
// takes no others.
func (r *renewer) abandon() {
	r.mu.Lock()
	left := slices.Clone(r.due)
	for _, a := range left {
		a.lease.index = -1
	}
	r.due, r.ended = nil, true
	r.mu.Unlock()
	r.cancel(left, nil)
}

// tick cancels every attempt that is past its time, and returns those to renew now,
// unless a batch is out, and how long to sleep.
func (r *renewer) tick(out bool) (sleep time.Duration, batch []*Attempt) {
	var lost, tooLong, overrun []*Attempt
	r.mu.Lock()
	at := now()
	r.align(at)
	if !out {
		for _, a := range r.overdue {
			if a.lease.index >= 0 && !a.lease.expiring && !at.reached(a.lease.deadline) {
				batch = append(batch, a)
			}
		}
		r.overdue = nil
	}
	for len(r.due) > 0 && at.reached(r.due[0].lease.due) {
		a := r.due[0]
		l := &a.lease
		switch {
		case at.reached(l.deadline):
			heap.Pop(&r.due)
			lost = append(lost, a)
			continue
		case at.reached(l.runUntil) && !a.running():
			l.runUntil = never
		case at.reached(l.runUntil):
			if l.overran(a, at, r.lease) {
				overrun = append(overrun, a)
			} else {
				tooLong = append(tooLong, a)
			}
		case out:
			l.renewAt = never // one batch at a time
			r.overdue = append(r.overdue, a)
		default:
			l.renewAt = never
			batch = append(batch, a)
		}
		l.schedule()
		heap.Fix(&r.due, 0)
	}
	sleep = renewerSleep(r.lease)
	if len(r.due) > 0 {
		sleep = min(sleep, at.until(r.due[0].lease.due))
	}
	r.sleeping = at.add(sleep)
	r.mu.Unlock()
	r.cancel(lost, tooLong)
	for _, a := range overrun {
		a.markLater()
	}
	return sleep, batch
}

// cancel stops the attempts whose lease is lost and the handlers that ran too long, and
// then reports them.
func (r *renewer) cancel(lost, tooLong []*Attempt) {
	notify := make([]bool, 0, len(lost)+len(tooLong))
	for _, a := range lost {
		notify = append(notify, a.loseLease())
	}
	for _, a := range tooLong {
		notify = append(notify, a.runTooLong())
	}
	for i, a := range lost {
		if notify[i] {
			a.report(Event{Kind: EventLeaseLost})
		}
		a.leaseLost()
	}
	for i, a := range tooLong {
		if notify[len(lost)+i] {
			a.report(Event{Kind: EventRunTooLong})
		}
	}
}

// align puts the heap in order again after the wall clock went ahead of the monotonic
// one: while the machine slept, or because it was set. The heap is ordered by the
// monotonic clock, which did not notice.
func (r *renewer) align(at instant) {
	const drift = 10 * time.Millisecond // between two looks
	ahead := at.skew() - r.skew
	r.skew += ahead
	if ahead < drift {
		return
	}
	for _, a := range r.due {
		l := &a.lease
		l.renewAt, l.deadline, l.runUntil = at.align(l.renewAt), at.align(l.deadline), at.align(l.runUntil)
		l.schedule()
	}
	heap.Init(&r.due)
}

// renew sends one batch and applies its results.
func (r *renewer) renew(ctx context.Context, batch []*Attempt) {
	ctx, cancel := context.WithTimeout(ctx, renewalTimeout(r.lease))
	defer cancel()
	requests := make([]store.RenewRequest, len(batch))
	for i, a := range batch {
		requests[i] = store.RenewRequest{ID: a.id, Owner: a.owner, Lease: r.lease}
	}
	sent := now()
	var statuses []store.RenewStatus
	err := apart(func() (err error) {
		statuses, err = r.store.renew(ctx, requests)
		return err
	})
	var lost []*Attempt
	for i, a := range batch {
		status := store.RenewBusy // not renewed, and not known to be lost: ask again until the deadline
		if err == nil {
			status = statuses[i]
		}
		if r.apply(a, status, sent) {
			lost = append(lost, a)
		}
	}
	r.cancel(lost, nil)
	for i, a := range batch {
		switch {
		case err != nil:
			a.report(Event{Kind: EventStoreError, Err: err})
		case statuses[i] == store.Renewed:
			a.report(Event{Kind: EventRenewed})
		}
	}
}

// apply applies the result of one renewal that was sent at the given instant, and reports
// whether the lease is lost.
func (r *renewer) apply(a *Attempt, status store.RenewStatus, sent instant) (lost bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := &a.lease
	if l.index < 0 { // ended, or lost, while the renewal was out
		return false
	}
	switch status {
	case store.RenewLost, store.RenewCompleted: // the lease is over, and from now on the store decides
		heap.Remove(&r.due, l.index)
		return status == store.RenewLost && !a.marking.Load() // the mark ends the lease too: the end of the attempt finds out
	case store.Renewed:
		l.deadline = sent.add(localDeadline(r.lease))
		l.renewAt = renewalDue(sent, r.lease)
	default:
		l.renewAt = now().add(renewalRetry(r.lease))
	}
	if l.expiring {
		l.renewAt = never
	}
	l.schedule()
	heap.Fix(&r.due, l.index)
	if l.due.mono < r.sleeping.mono {
		signal(r.wake)
	}
	return false
}

// leaseState is the renewer's part of an attempt, guarded by renewer.mu.
type leaseState struct {
	renewAt  instant // when to renew; never for an attempt without a lease, and while a renewal is out
	deadline instant // until when the lease is relied on
	runUntil instant // Config.MaxRun, then a lease more to return in, and then every lease
	turn             // at the earliest of the three
	expiring bool    // the lease is not renewed any more
	tooLong  bool    // the handler was cancelled for Config.MaxRun
}

func (l *leaseState) schedule() {
	l.due = earlier(earlier(l.renewAt, l.deadline), l.runUntil)
}

func (a *Attempt) place() *turn { return &a.lease.turn }

// overran applies that runUntil is reached: first the handler is cancelled, and gets a
// lease more to return in; then, which the result says, its record is to be marked, and
// after each lease again until it is. An attempt without a claim that lapses has no
// second step.
func (l *leaseState) overran(a *Attempt, at instant, lease time.Duration) (mark bool) {
	mark, l.tooLong = l.tooLong, true
	l.runUntil = at.add(lease)
	if a.unprotected {
		l.runUntil = never
	}
	return mark
}

// leases counts the attempts that have a lease, which the unprotected ones have not.
func (r *renewer) leases() (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range r.due {
		if !a.unprotected {
			n++
		}
	}
	return n
}
