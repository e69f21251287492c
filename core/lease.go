package reprise

// leaseState is the renewer's part of an attempt, guarded by renewer.mu.
type leaseState struct {
	renewAt  instant // when to renew; never for an attempt without a lease, and while a renewal is out
	deadline instant // until when the lease is relied on
	runUntil instant // Config.MaxRun; never once the handler was cancelled for it
	next     instant // the earliest of the three: the heap's order
	index    int     // in the heap; -1 outside of it
	expiring bool    // the lease is not renewed any more
}

func (l *leaseState) schedule() {
	l.next = earlier(earlier(l.renewAt, l.deadline), l.runUntil)
}

// dueHeap orders attempts by the next thing to do for them.
type dueHeap []*Attempt

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
