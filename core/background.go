package reprise

import (
	"container/heap"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/reprise-go/reprise/core/store"
)

// backgroundWorkers is how many calls to the store the background makes at once.
const backgroundWorkers = 4

// background repeats tasks that no request waits for until they have ended. It is a heap
// of them, served by a few goroutines that start with the first task and end with the
// last.
//
// The tasks share one backoff: after a failure one worker at a time tries, so a failing
// store is called at a bounded rate.
type background struct {
	base    context.Context // of the engine
	work    *openWork       // likewise
	timeout time.Duration   // of a try
	limits  BackgroundLimits

	mu       sync.Mutex
	tasks    schedule[task]
	held     int   // tasks, those included that run
	aside    int   // those of them that end no attempt
	bytes    int64 // of their payloads
	workers  int
	sleeping bool          // one worker waits for the next task to be due
	probing  bool          // one worker tries whether the store is back
	pause    time.Duration // between tries after a failure; 0 while the store is well
	resume   instant       // when the pause ends
	wake     chan struct{} // asks the sleeping worker to look again
	dropped  atomic.Uint64
}

// task is something to do in the background: an [ending], an [orphan] or a [mark].
type task interface {
	// try asks the store once.
	try(ctx context.Context) error

	// settle applies the result of a try, and reports whether to try again.
	settle(ctx context.Context, err error) (again bool)

	base() *slot
	scheduled
}

// slot is the place of a task in the background.
type slot struct {
	attempt *Attempt
	size    int64 // of its payload
	share   int   // of the background, for tasks that end no attempt; 0: it ends its attempt

	since time.Duration // when it was added, by the monotonic clock
	turn                // not before
	pause time.Duration // after its last failure
	probe bool          // it shows whether the store is back
}

func (s *slot) base() *slot  { return s }
func (s *slot) place() *turn { return &s.turn }

// errMoot says that the store was not asked: the handler whose record was to be marked
// has returned, and its end says more.
var errMoot = errors.New("reprise: nothing to do")

// add takes over a task if there is room for it, and enter, which is called with b.mu
// held, agrees. A nil enter does.
func (b *background) add(t task, enter func() bool) (ok bool) {
	s := t.base()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.held >= b.limits.Tasks || b.bytes+s.size > b.limits.Bytes || s.share > 0 && b.aside >= s.share || enter != nil && !enter() {
		return false
	}
	b.count(s, 1)
	if s.share > 0 {
		b.work.retain() // the work of an attempt is counted already
	}
	at := now()
	s.since = at.mono
	if s.due == (instant{}) {
		s.due = at
	}
	b.schedule(t)
	return true
}

// count adds n tasks like the one in s.
func (b *background) count(s *slot, n int) {
	b.held += n
	b.bytes += int64(n) * s.size
	if s.share > 0 {
		b.aside += n
	}
}

// remove gives back the room of a task that has ended.
func (b *background) remove(t task) {
	s := t.base()
	b.count(s, -1)
	if s.attempt.task == t {
		s.attempt.task = nil
	}
}

// run makes one try, and reports its failure.
//
//nolint:contextcheck // a callContext inherits
func (b *background) run(ctx context.Context, t task) error {
	if ctx.Err() != nil {
		return store.ErrClosed
	}
	a := t.base().attempt
	bounded, cancel := context.WithTimeout(ctx, b.timeout)
	defer cancel()
	err := apart(func() error { return t.try(&callContext{Context: bounded, values: a.after}) })
	if err != nil && !errors.Is(err, store.ErrLeaseLost) && !errors.Is(err, store.ErrClosed) && !errors.Is(err, errMoot) {
		a.report(Event{Kind: EventStoreError, Err: err})
	}
	return err
}

// schedule puts a task in the heap and sees that a worker looks at it.
func (b *background) schedule(t task) {
	heap.Push(&b.tasks, t)
	if b.sleeping {
		signal(b.wake)
	} else {
		b.startWorker()
	}
}

// startWorker starts one more worker, if there may be one.
func (b *background) startWorker() {
	if b.workers < backgroundWorkers {
		b.workers++
		go b.serve(b.base)
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
			again := t.settle(ctx, err)
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
func (b *background) take(ctx context.Context, at instant) (t task, wait time.Duration) {
	if len(b.tasks) == 0 {
		return nil, 0
	}
	if ctx.Err() != nil { // the engine has stopped: every task ends at once
		return heap.Pop(&b.tasks).(task), 0
	}
	if b.pause > 0 {
		if b.probing {
			return nil, 0
		}
		wait = at.until(b.resume)
	}
	if !b.work.isClosing() { // a closing engine waits for the store only
		wait = max(wait, at.until(b.tasks[0].base().due))
	}
	switch {
	case wait <= 0:
		t = heap.Pop(&b.tasks).(task)
		if b.pause > 0 {
			t.base().probe, b.probing = true, true
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
		signal(b.wake)
	}
}

// reschedule moves the backoff by the result of a try, and puts the task back if it is to
// be done again. Only a definite answer of the store ends the pause: a task that is given
// up after a failure leaves it to the next one. b.mu is held.
func (b *background) reschedule(t task, err error, again bool) {
	s := t.base()
	probe := s.probe
	if probe {
		s.probe, b.probing = false, false
	}
	at := now()
	switch f, _ := classify(err); {
	case errors.Is(err, errMoot):
	case f.repeatEnd:
		if probe || b.pause == 0 { // a try from before the pause is no news about the store
			b.pause = nextPause(b.pause)
			b.resume = at.add(jitter(b.pause))
		}
		s.pause = nextPause(s.pause)
		s.due = at.add(jitter(s.pause))
	default:
		b.pause, s.pause = 0, 0
	}
	if again {
		b.schedule(t)
		return
	}
	b.remove(t)
}

func nextPause(d time.Duration) time.Duration { return min(max(4*d, firstPause), longestPause) }
