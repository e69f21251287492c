package reprise

import (
	"container/heap"
	"context"
	"errors"
	"time"
)

// backgroundWorkers is how many calls to the store the background makes at once.
const backgroundWorkers = 4

// schedule puts a task in the heap and sees that a worker looks at it.
func (b *background) schedule(t *task) {
	heap.Push(&b.tasks, t)
	if b.sleeping {
		b.poke()
	} else {
		b.startWorker()
	}
}

// startWorker starts one more worker, if there may be one.
func (b *background) startWorker() {
	if b.workers < backgroundWorkers {
		b.workers++
		go b.serve(b.engine.base)
	}
}

// serve is a worker. It ends when there is no task.
func (b *background) serve(ctx context.Context) {
	b.mu.Lock()
	defer b.mu.Unlock()
	defer func() { b.workers-- }()
	for {
		t, wait := b.take(ctx, now())
		switch {
		case t != nil:
			if len(b.tasks) > 0 {
				b.startWorker()
			}
			b.mu.Unlock()
			err := b.run(ctx, t)
			again := b.apply(ctx, t, err)
			b.mu.Lock()
			b.reschedule(t, err, again)
		case wait > 0:
			b.sleeping = true
			b.mu.Unlock()
			b.sleep(ctx, wait)
			b.mu.Lock()
			b.sleeping = false
		default:
			return
		}
	}
}

// take returns the next task, or how long to sleep until it is due. It returns neither
// when there is no task, or another worker waits for it.
func (b *background) take(ctx context.Context, at instant) (t *task, wait time.Duration) {
	if len(b.tasks) == 0 {
		return nil, 0
	}
	if ctx.Err() != nil { // the engine has stopped: every task ends at once
		return heap.Pop(&b.tasks).(*task), 0
	}
	if b.pause > 0 {
		if b.probing {
			return nil, 0
		}
		wait = at.until(b.resume)
	}
	if !b.engine.work.isClosing() { // a closing engine waits for the store only
		wait = max(wait, at.until(b.tasks[0].due))
	}
	switch {
	case wait <= 0:
		t = heap.Pop(&b.tasks).(*task)
		if b.pause > 0 {
			t.probe, b.probing = true, true
		}
		return t, 0
	case b.sleeping:
		return nil, 0
	default:
		return nil, wait
	}
}

// sleep returns after d, or when there is something new to look at.
func (b *background) sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-b.wake:
	case <-ctx.Done():
	}
}

// look lets the worker that sleeps look again: the engine is closing. A worker that is
// about to sleep has set its flag before it unlocks b.mu, so it finds the request.
func (b *background) look() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.sleeping {
		b.poke()
	}
}

func (b *background) poke() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// reschedule moves the backoff by the result of a try, and puts the task back if it is to
// be done again. Only a definite answer of the store ends the pause: a task that is given
// up after a failure leaves it to the next one. b.mu is held.
func (b *background) reschedule(t *task, err error, again bool) {
	probe := t.probe
	if probe {
		t.probe, b.probing = false, false
	}
	at := now()
	switch f, _ := classify(err); {
	case errors.Is(err, errMoot):
	case f.repeatEnd:
		if probe || b.pause == 0 { // a try from before the pause is no news about the store
			b.pause = nextPause(b.pause)
			b.resume = at.add(jitter(b.pause))
		}
		t.pause = nextPause(t.pause)
		t.due = at.add(jitter(t.pause))
	default:
		b.pause, t.pause = 0, 0
	}
	if again {
		b.schedule(t)
		return
	}
	b.remove(t)
}

func nextPause(d time.Duration) time.Duration { return min(max(4*d, firstPause), longestPause) }

// taskHeap orders tasks by when they are due.
type taskHeap []*task

func (h taskHeap) Len() int           { return len(h) }
func (h taskHeap) Less(i, j int) bool { return h[i].due.mono < h[j].due.mono }
func (h taskHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

// Push implements [heap.Interface].
func (h *taskHeap) Push(x any) {
	t := x.(*task)
	t.index = len(*h)
	*h = append(*h, t)
}

// Pop implements [heap.Interface].
func (h *taskHeap) Pop() any {
	last := len(*h) - 1
	t := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	t.index = -1
	return t
}
