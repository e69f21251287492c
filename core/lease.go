package reprise

import "time"

// leaseState is the renewer's part of an attempt, guarded by renewer.mu.
type leaseState struct {
	renewAt  instant // when to renew; never for an attempt without a lease, and while a renewal is out
	deadline instant // until when the lease is relied on
	runUntil instant // Config.MaxRun, then a lease more to return in, and then every lease
	next     instant // the earliest of the three: the heap's order
	index    int     // in the heap; -1 outside of it
	expiring bool    // the lease is not renewed any more
	tooLong  bool    // the handler was cancelled for Config.MaxRun
}

func (l *leaseState) schedule() {
	l.next = earlier(earlier(l.renewAt, l.deadline), l.runUntil)
}

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

// dueHeap orders attempts by the next thing to do for them.
type dueHeap []*Attempt

// leases counts the attempts that have a lease, which the unprotected ones have not.
func (h dueHeap) leases() (n int) {
	for _, a := range h {
		if !a.unprotected {
			n++
		}
	}
	return n
}

func (h dueHeap) Len() int           { return len(h) }
func (h dueHeap) Less(i, j int) bool { return h[i].lease.next.mono < h[j].lease.next.mono }
func (h dueHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].lease.index, h[j].lease.index = i, j
}

// Push implements [heap.Interface].
func (h *dueHeap) Push(x any) {
	a := x.(*Attempt)
	a.lease.index = len(*h)
	*h = append(*h, a)
}

// Pop implements [heap.Interface].
func (h *dueHeap) Pop() any {
	last := len(*h) - 1
	a := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	a.lease.index = -1
	return a
}
