package reprise

import (
	"bytes"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/reprise-go/reprise/core/store"
)

// background retries the ends of attempts that the store did not take in time, and
// releases claims of unknown outcome. It is a heap of tasks, served by a few goroutines
// that start with the first task and end with the last.
//
// The tasks share one backoff: after a failure one worker at a time tries, so a failing
// store is called at a bounded rate.
type background struct {
	engine *Engine
	limits BackgroundLimits

	mu       sync.Mutex
	tasks    taskHeap
	held     int   // tasks, those included that run
	unknown  int   // those of them that end no attempt: of kind taskReleaseUnknown and taskOverrun
	bytes    int64 // of their payloads
	workers  int
	sleeping bool          // one worker waits for the next task to be due
	probing  bool          // one worker tries whether the store is back
	pause    time.Duration // between tries after a failure; 0 while the store is well
	resume   instant       // when the pause ends
	wake     chan struct{} // asks the sleeping worker to look again
	dropped  atomic.Uint64
}

// task is one thing to do in the background: at most one that ends an attempt, and one
// that marks it before.
type task struct {
	kind    taskKind
	attempt *Attempt
	request store.CompleteRequest // of taskComplete
	err     error                 // of the last try

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
	taskUnknown
	taskOverrun // mark the record of a handler that runs too long
)

// add takes over the end of an attempt. Over the limits it drops the task: the lease is
// not renewed any more, and the claim lapses.
func (b *background) add(t *task) {
	t.attempt.settled = true
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

// addUnknown takes over the release of a claim without an attempt. Such tasks may fill
// half of the background: a dropped one blocks its key for a lease at most, and a dropped
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

// addOverrun takes over to mark the record of a handler that did not return in time. It
// does nothing where there is no room, or such a task: the renewer, which keeps the lease
// until the record is marked, asks again.
func (b *background) addOverrun(a *Attempt) {
	b.mu.Lock()
	defer b.mu.Unlock()
	t := &task{kind: taskOverrun, attempt: a}
	if a.task != nil || !a.running() || b.unknown >= b.unknownLimit(t) || b.held >= b.limits.Tasks {
		return
	}
	b.engine.work.retain()
	b.unknown++
	a.task = t
	b.push(t, 0)
}

// unknownLimit returns how many tasks that end no attempt there may be when t is one of
// them. The rest of the background is for completions.
func (b *background) unknownLimit(t *task) int {
	if t.blocks() {
		return max(1, b.limits.Tasks*3/4)
	}
	return max(1, b.limits.Tasks/2)
}

// blocks reports whether the claim that t releases, if it was written, refuses its key
// until the retention ends, because it is never taken over.
func (t *task) blocks() bool {
	return t.kind == taskReleaseUnknown && t.attempt.policy.AtMostOnce
}

var errDropped = errors.New("reprise: end of an attempt dropped")

func (t *task) dropError(why string) error {
	if t.blocks() {
		why += "; if the store wrote the claim, its key is refused until an operator resolves it or its retention ends"
	}
	if t.err == nil {
		return fmt.Errorf("%w: %s", errDropped, why)
	}
	return fmt.Errorf("%w: %s: %w", errDropped, why, t.err)
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

// remove gives back the room of a task that has ended.
func (b *background) remove(t *task) {
	b.held--
	b.bytes -= int64(len(t.request.Payload))
	if t.kind == taskReleaseUnknown || t.kind == taskOverrun {
		b.unknown--
	}
	if t.attempt.task == t {
		t.attempt.task = nil
	}
}
