package reprise

import (
	"math/rand/v2"
	"time"
)

// tenure is the renewer's part of an attempt, guarded by renewer.mu.
type tenure struct {
	renewAt  instant // when to renew; never for an Atomic attempt, and while a renewal is out
	deadline instant // when to stop believing in the lease
	runUntil instant // Config.MaxRun; never once it was told
	next     instant // the earliest of the three: the heap's order
	index    int     // in the heap; -1 outside of it
}

// renewAt draws when to renew a lease that was asked for at sent: after a third of it, give or take a tenth of that, so that
// leases taken at once are not renewed at once for ever. The instants are a sixtieth of the lease apart, so that
// however many attempts run, those that are due at about the same time share a batch.
func renewAt(sent instant, lease time.Duration) instant {
	third := max(lease, 0) / 3
	due := sent.add(third - third/20 + rand.N(third*3/20+1)) //nolint:gosec // nobody gains by guessing it
	grid := third/20 + 1
	return due.add(-((due.mono%grid + grid) % grid)) // down to the grid, also where the clock reads less than zero
}

func (t *tenure) schedule() {
	t.next = earlier(earlier(t.renewAt, t.deadline), t.runUntil)
}

// dueHeap orders attempts by the next thing to do for them.
type dueHeap []*Attempt

func (h dueHeap) Len() int           { return len(h) }
func (h dueHeap) Less(i, j int) bool { return h[i].tenure.next.mono < h[j].tenure.next.mono }
func (h dueHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].tenure.index, h[j].tenure.index = i, j
}

// Push implements [heap.Interface].
func (h *dueHeap) Push(x any) {
	a := x.(*Attempt)
	a.tenure.index = len(*h)
	*h = append(*h, a)
}

// Pop implements [heap.Interface].
func (h *dueHeap) Pop() any {
	last := len(*h) - 1
	a := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	a.tenure.index = -1
	return a
}
