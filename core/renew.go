package reprise

import (
	"container/heap"
	"context"
	"slices"
	"sync"
	"time"
)

// renewer keeps the leases of all attempts of an engine. It is a heap of due times served by one goroutine, which starts with
// the first attempt and ends in Close; renewals go out as one batch per tick, never two at once. While a batch is out the goroutine goes on
// watching deadlines, so a store that hangs cannot keep a handler from being told.
type renewer struct {
	store *driver
	lease time.Duration
	tell  func(a *Attempt, cause error) // tells the attempt; called without mu

	mu       sync.Mutex
	due      dueHeap
	started  bool
	ended    bool
	sleeping instant       // the goroutine looks again at this instant, unasked
	skew     time.Duration // of the clocks when it looked last
	wake     chan struct{} // asks it to look now
	done     chan struct{} // closed when the goroutine has ended
}

// longestSleep bounds how late a deadline is noticed after the machine was suspended, when timers stood still.
const longestSleep = time.Second

func newRenewer(store *driver, lease time.Duration, tell func(*Attempt, error)) *renewer {
	return &renewer{
		store: store, lease: lease, tell: tell,
		skew: now().skew(), wake: make(chan struct{}, 1), done: make(chan struct{}),
	}
}

// add starts to keep a lease that was granted or renewed at sent. It reports false after abandon.
func (r *renewer) add(ctx context.Context, a *Attempt, deadline, renewAt, runUntil instant) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return false
	}
	a.tenure = tenure{renewAt: renewAt, deadline: deadline, runUntil: runUntil}
	a.tenure.schedule()
	heap.Push(&r.due, a)
	if !r.started {
		r.started = true
		go r.serve(ctx)
	} else if a.tenure.next.mono < r.sleeping.mono {
		r.poke()
	}
	return true
}

// remove stops keeping the lease of a. It may have gone already.
func (r *renewer) remove(a *Attempt) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if a.tenure.index >= 0 {
		heap.Remove(&r.due, a.tenure.index)
	}
}

// believed reports whether the lease of a can still be counted on.
func (a *Attempt) believed() bool {
	r := a.engine.renewer
	r.mu.Lock()
	defer r.mu.Unlock()
	return a.tenure.index >= 0 && !now().reached(a.tenure.deadline)
}

func (r *renewer) poke() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// wait returns when the goroutine, whose own context has ended, has gone, or when ctx ends.
func (r *renewer) wait(ctx context.Context) {
	r.mu.Lock()
	started := r.started
	r.mu.Unlock()
	if started {
		select {
		case <-r.done:
		case <-ctx.Done():
		}
	}
}

// serve is the goroutine. It ends with ctx, when the batch that is out has its answer.
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

// abandon tells every attempt that is left that its lease is not kept any more, and takes no others.
func (r *renewer) abandon() {
	r.mu.Lock()
	left := slices.Clone(r.due)
	for _, a := range left {
		a.tenure.index = -1
	}
	r.due, r.ended = nil, true
	r.mu.Unlock()
	for _, a := range left {
		r.tell(a, ErrLeaseLost)
	}
}

// tick tells every attempt that is past its time, and returns those to renew now, unless a batch is out, and how long to sleep.
func (r *renewer) tick(out bool) (sleep time.Duration, batch []*Attempt) {
	type notice struct {
		a     *Attempt
		cause error
	}
	var notices []notice
	r.mu.Lock()
	at := now()
	r.align(at)
	for len(r.due) > 0 && at.reached(r.due[0].tenure.next) {
		a := r.due[0]
		t := &a.tenure
		switch {
		case at.reached(t.deadline):
			heap.Pop(&r.due)
			notices = append(notices, notice{a, ErrLeaseLost})
			continue
		case at.reached(t.runUntil):
			t.runUntil = never
			notices = append(notices, notice{a, ErrRunTooLong})
		case out:
			t.renewAt = at.add(r.retry()) // one batch at a time
		default:
			t.renewAt = never
			batch = append(batch, a)
		}
		t.schedule()
		heap.Fix(&r.due, 0)
	}
	// No lease is due for renewal before a third of it, so looking every quarter means that a steady stream of short
	// requests never has to wake the goroutine.
	sleep = min(r.lease/4, longestSleep)
	if len(r.due) > 0 {
		sleep = min(sleep, at.until(r.due[0].tenure.next))
	}
	r.sleeping = at.add(sleep)
	r.mu.Unlock()
	for _, n := range notices {
		r.tell(n.a, n.cause)
	}
	return sleep, batch
}

// align puts the heap in order again after the wall clock went ahead of the other: while the machine slept, or because
// somebody set it. The order is by the other, which knows nothing of it.
func (r *renewer) align(at instant) {
	const drift = 10 * time.Millisecond // between two looks
	ahead := at.skew() - r.skew
	r.skew += ahead
	if ahead < drift {
		return
	}
	for _, a := range r.due {
		t := &a.tenure
		t.renewAt, t.deadline, t.runUntil = at.align(t.renewAt), at.align(t.deadline), at.align(t.runUntil)
		t.schedule()
	}
	heap.Init(&r.due)
}

// renew sends one batch and takes in its answers.
func (r *renewer) renew(ctx context.Context, batch []*Attempt) {
	ctx, cancel := context.WithTimeout(ctx, r.lease/6)
	defer cancel()
	requests := make([]RenewRequest, len(batch))
	for i, a := range batch {
		requests[i] = RenewRequest{ID: a.id, Owner: a.owner, Lease: r.lease}
	}
	sent := now()
	statuses, err := r.store.renew(ctx, requests)
	for i, a := range batch {
		status := RenewBusy // not renewed, and not known to be lost: ask again until the deadline
		if err == nil {
			status = statuses[i]
		}
		r.settle(a, status, sent)
		switch {
		case err != nil:
			a.observe(EventStoreError, err)
		case status == Renewed:
			a.observe(EventRenewed, nil)
		}
	}
}

// settle takes in the answer to one renewal that was sent at the given instant.
func (r *renewer) settle(a *Attempt, status RenewStatus, sent instant) {
	if r.update(a, status, sent) {
		r.tell(a, ErrLeaseLost)
	}
}

// update changes what is to be done for a, and reports whether its lease is lost.
func (r *renewer) update(a *Attempt, status RenewStatus, sent instant) (lost bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := &a.tenure
	if t.index < 0 { // resolved, or given up, while the renewal was out
		return false
	}
	switch status {
	case RenewLost, RenewCompleted: // nothing is left to keep, and from now on the store answers
		heap.Remove(&r.due, t.index)
		return status == RenewLost
	case Renewed:
		t.deadline = sent.add(localDeadline(r.lease))
		t.renewAt = renewAt(sent, r.lease)
	default:
		t.renewAt = now().add(r.retry())
	}
	t.schedule()
	heap.Fix(&r.due, t.index)
	if t.next.mono < r.sleeping.mono {
		r.poke()
	}
	return false
}

// retry is the pause after a renewal that was not answered.
func (r *renewer) retry() time.Duration { return r.lease / 20 }
