package reprise

import (
	"bytes"
	"container/heap"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// backgroundWorkers is how many calls to the store the background makes at once.
const backgroundWorkers = 4

// background ends what a request could not: completions and releases that the store did
// not take in time, and claims that may have been granted without an answer. It is a heap
// of tasks, served by a few goroutines that start with the first task and end with the
// last.
//
// The tasks share one backoff: after a failure one worker at a time tries, so a store
// that is in trouble is not called more often because more requests failed.
type background struct {
	engine *Engine
	limits BackgroundLimits

	mu       sync.Mutex
	tasks    taskHeap
	held     int   // tasks, those included that run
	unknown  int   // those of them of kind taskReleaseUnknown
	bytes    int64 // of their payloads
	workers  int
	sleeping bool          // one worker waits for the next task to be due
	probing  bool          // one worker tries whether the store is back
	pause    time.Duration // between tries after a failure; 0 while the store is well
	resume   instant       // when the pause ends
	wake     chan struct{} // asks the sleeping worker to look again
	dropped  atomic.Uint64
}

// task is one thing to do in the background: at most one for each attempt.
type task struct {
	kind    taskKind
	attempt *Attempt
	request CompleteRequest // of taskComplete
	err     error           // of the last try

	twice  bool // of taskReleaseUnknown: release once more when the last try of the claim has arrived
	silent bool // of taskReleaseUnknown: there is no event for it

	since   time.Duration // when it was added, by the monotonic clock
	due     instant       // not before
	pause   time.Duration // of this task after its last failure
	probe   bool          // it shows whether the store is back
	refused bool          // the store works and refuses it: it ends with the lease, which is not renewed
	index   int           // in the heap; -1 while it runs
}

type taskKind uint8

const (
	taskComplete taskKind = iota
	taskRelease
	taskReleaseUnknown
)

// add takes over the end of an attempt. Over the limits it drops the task: the lease is
// not renewed any more, and the claim lapses.
func (b *background) add(t *task) {
	size := int64(len(t.request.Payload))
	f, _ := classify(t.err)
	b.mu.Lock()
	fits := b.held < b.limits.Tasks && b.bytes+size <= b.limits.Bytes
	if fits {
		t.request.Payload = bytes.Clone(t.request.Payload)
		t.attempt.task = t
		b.push(t, size)
	}
	b.mu.Unlock()
	switch {
	case !fits:
		b.dropped.Add(1)
		t.attempt.conclude(EndDropped, t.dropError("the background is full"))
	case f.refused:
		b.refuse(t)
	}
}

// addUnknown takes over the release of a claim that nobody runs. Such tasks may fill half
// of the background: a dropped one blocks its key for a lease at most, and a dropped
// completion may run an operation twice. Those that would block their keys for longer may
// fill another quarter.
func (b *background) addUnknown(t *task) {
	b.mu.Lock()
	fits := b.unknown < b.unknownLimit(t) && b.held < b.limits.Tasks
	if fits {
		b.engine.work.retain()
		b.unknown++
		b.push(t, 0)
	}
	b.mu.Unlock()
	if !fits {
		b.drop(t, t.err, "the background is full")
	}
}

// unknownLimit returns how many releases of unknown claims there may be when t is one of
// them. What is left of the background is for completions.
func (b *background) unknownLimit(t *task) int {
	if t.blocks() {
		return max(1, b.limits.Tasks*3/4)
	}
	return max(1, b.limits.Tasks/2)
}

// blocks reports whether the claim that t releases, if it was written, refuses its key
// until the retention ends: nobody may take it over.
func (t *task) blocks() bool {
	return t.kind == taskReleaseUnknown && t.attempt.preset == AtMostOnce
}

func (t *task) dropError(why string) error {
	if t.blocks() {
		why += "; if the store wrote the claim, its key is refused until an operator resolves it or its retention ends"
	}
	if t.err == nil {
		return fmt.Errorf("%w: %s", ErrDropped, why)
	}
	return fmt.Errorf("%w: %s: %w", ErrDropped, why, t.err)
}

func (b *background) push(t *task, size int64) {
	b.held++
	b.bytes += size
	at := now()
	t.since = at.mono
	if t.due == (instant{}) {
		t.due = at
	}
	b.schedule(t)
}

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

// serve is a worker. It ends when there is nothing for it to do.
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
// when there is nothing to do, or another worker waits for it.
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

// look lets the worker that sleeps look again: the engine is closing. One that is about
// to sleep has said so before it let go of b.mu, so it finds the request.
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

// run makes one try.
//
//nolint:contextcheck // a callContext inherits
func (b *background) run(ctx context.Context, t *task) error {
	if err := ctx.Err(); err != nil {
		return ErrClosed
	}
	a, store := t.attempt, &b.engine.store
	ctx, cancel := context.WithTimeout(ctx, b.engine.cfg.CompleteTimeout)
	defer cancel()
	ctx = &callContext{Context: ctx, values: a.after}
	var err error
	if t.kind == taskComplete {
		err = store.complete(ctx, t.request)
	} else {
		err = store.release(ctx, a.id, a.owner)
	}
	if err != nil && !errors.Is(err, ErrLeaseLost) {
		a.report(EventStoreError, err)
	}
	return err
}

// apply applies the answer to a try, and reports whether the task is to be done again.
func (b *background) apply(ctx context.Context, t *task, err error) (again bool) {
	a := t.attempt
	f, _ := classify(err)
	why := ""
	switch {
	case err == nil:
	case errors.Is(err, ErrLeaseLost):
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
		if err != nil && !errors.Is(err, ErrLeaseLost) {
			b.drop(t, err, why)
		}
		return b.unknownReleased(ctx, t, err)
	case err == nil && t.kind == taskComplete:
		a.concludeLater(EndRecorded, nil)
	case err == nil:
		a.releaseLateTry()
		a.concludeLater(EndReleased, nil)
	default:
		if errors.Is(err, ErrLeaseLost) {
			a.report(a.loseLease(), nil)
		}
		b.drop(t, err, why)
	}
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
		a.report(EventReleased, nil)
	}
	b.engine.work.done()
	return false
}

// tooOld reports whether a task has been repeated for as long as the limit allows.
func (b *background) tooOld(t *task) bool { return sinceStart()-t.since >= b.limits.Age }

// refuse notes that the store refuses a task for good, and reports false when nothing is
// gained by repeating it: its claim has lapsed by now. From the first refusal on its
// lease is not renewed. A lapsed claim that blocks its key is released even so.
func (b *background) refuse(t *task) (ok bool) {
	switch {
	case t.blocks():
		return !b.tooOld(t)
	case t.kind == taskReleaseUnknown:
		return sinceStart()-t.attempt.began <= b.engine.cfg.Lease+b.engine.cfg.ClaimTimeout
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
		t.attempt.report(EventDropped, t.dropError(why))
	} else {
		t.attempt.concludeLater(EndDropped, t.dropError(why))
	}
}

// reschedule moves the backoff by the answer to a try, and puts the task back if it is to
// be done again. b.mu is held.
func (b *background) reschedule(t *task, err error, again bool) {
	probe := t.probe
	if probe {
		t.probe, b.probing = false, false
	}
	at := now()
	switch {
	case again && err != nil:
		if probe || b.pause == 0 { // a try from before the pause says nothing new about the store
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

// remove gives back the room of a task that has ended.
func (b *background) remove(t *task) {
	b.held--
	b.bytes -= int64(len(t.request.Payload))
	if t.kind == taskReleaseUnknown {
		b.unknown--
	}
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
