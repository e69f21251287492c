package batching

import (
	"cmp"
	"context"
	"runtime"
	"sync"
	"time"
)

// Queue sends calls in batches. All methods are safe for concurrent use. [New] makes one.
type Queue[T any] struct {
	config Config[T]
	calls  sync.Pool // of *Call[T]

	mu      sync.Mutex
	first   *Call[T] // the oldest that waits
	last    *Call[T]
	waiting int
	busy    int       // lanes with a batch that is on its way or being collected; see hold
	spare   []Sent[T] // memory for a batch
}

// New returns a queue.
func New[T any](c Config[T]) *Queue[T] {
	c.Lanes, c.MaxCalls = max(c.Lanes, 1), cmp.Or(c.MaxCalls, DefaultMaxCalls)
	q := &Queue[T]{config: c}
	q.calls.New = func() any {
		return &Call[T]{queue: q, wake: make(chan struct{}, 1)}
	}
	return q
}

// Call returns a call for [Queue.Do]. The caller releases it when it has read the answer.
func (q *Queue[T]) Call() *Call[T] {
	c := q.calls.Get().(*Call[T]) //nolint:forcetypeassert // the pool holds only these
	c.refs.Store(1)
	return c
}

// Waiting returns the number of calls that wait for a lane.
func (q *Queue[T]) Waiting() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.waiting
}

// Do sends c and returns when it is finished, with the error of [Sent.Finish], or when
// ctx ends, with an [*Error]. After an [*Error], a sender may still use c.Value: the
// caller must not touch it any more, and may only release c.
func (q *Queue[T]) Do(ctx context.Context, c *Call[T]) error {
	if err := ctx.Err(); err != nil {
		return &Error{Err: err}
	}
	select {
	case <-c.wake: // Send ended the goroutine of the Do that had this call before
	default:
	}
	c.ctx = ctx
	generation := c.enter(queued)
	q.enqueue(ctx, c)
	select {
	case <-c.wake:
		return c.err
	case <-ctx.Done():
		return q.leave(ctx, c, generation)
	}
}

// enqueue sends c if there is a lane for it, and lets it wait for one otherwise.
func (q *Queue[T]) enqueue(ctx context.Context, c *Call[T]) {
	q.mu.Lock()
	if q.busy == 0 {
		q.busy = 1
		q.push(c)
		q.mu.Unlock()
		q.lead(ctx, c)
		return
	}
	if !q.patient(ctx) {
		q.mu.Unlock()
		c.alone[0] = q.hand(c) // outside of the lanes
		q.send(ctx, c.alone[:])
		return
	}
	q.push(c)
	open := q.needsLane()
	if open {
		q.busy++
	}
	q.mu.Unlock()
	if open {
		go q.lane(nil)
	}
}

// lead collects the batch that c started. If no other call joined, it sends c here;
// otherwise a lane sends the batch, because the context of one caller must not bound the
// calls of others.
func (q *Queue[T]) lead(ctx context.Context, c *Call[T]) {
	q.yield()
	q.mu.Lock()
	batch := q.take()
	q.mu.Unlock()
	if len(batch) != 1 || batch[0].call != c || q.config.Detached {
		go q.lane(batch)
		return
	}
	c.alone[0] = batch[0]
	defer q.pass(batch, q.hold()) // even if Send ends the goroutine
	q.send(ctx, c.alone[:])
}

// patient reports whether ctx leaves a call the time to wait for a lane.
func (q *Queue[T]) patient(ctx context.Context) bool {
	if q.config.Patience <= 0 {
		return true
	}
	deadline, bounded := ctx.Deadline()
	return !bounded || time.Until(deadline) >= q.config.Patience
}

// leave ends c when its context has ended: it withdraws c, or leaves c to its sender.
func (q *Queue[T]) leave(ctx context.Context, c *Call[T], generation uint64) error {
	q.mu.Lock()
	if c.phase() == queued {
		q.remove(c)
		q.mu.Unlock()
		return &Error{Err: ctx.Err()}
	}
	withdrawn := c.advance(generation, taken, abandoned)
	left := withdrawn || c.advance(generation, sent, abandoned)
	b := c.batch
	q.mu.Unlock()
	if left {
		b.abandoned()
		return &Error{Sent: !withdrawn, Err: ctx.Err()}
	}
	<-c.wake // it was finished meanwhile
	return c.err
}

// lane sends batch, and then others for as long as the lane is needed.
func (q *Queue[T]) lane(batch []Sent[T]) {
	over := false
	var held func() bool
	defer func() {
		if !over { // Send ended this goroutine
			q.pass(nil, held)
		}
	}()
	for {
		held = q.hold()
		if len(batch) == 0 {
			q.yield()
			q.mu.Lock()
			batch = q.take()
			q.mu.Unlock()
		}
		if len(batch) > 0 {
			q.sendBatch(batch)
		}
		if over = !held() || !q.keepLane(batch); over {
			return
		}
		batch = nil
	}
}

// hold gives the lane of a batch to another one after Patience. The function that it
// returns prevents that, and reports whether it was in time.
func (q *Queue[T]) hold() (held func() bool) {
	if q.config.Patience <= 0 {
		return always
	}
	return time.AfterFunc(q.config.Patience, func() { q.pass(nil, always) }).Stop
}

func always() bool { return true } // not a closure, which would allocate

// pass frees the lane of the calling goroutine, if held, or gives it to another one.
func (q *Queue[T]) pass(memory []Sent[T], held func() bool) {
	if held() && q.keepLane(memory) {
		go q.lane(nil)
	}
}

// keepLane frees a lane, and reports whether it is needed again at once. It keeps the
// memory of the batch that was sent for the next one.
func (q *Queue[T]) keepLane(memory []Sent[T]) bool {
	clear(memory)
	q.mu.Lock()
	defer q.mu.Unlock()
	if cap(memory) > cap(q.spare) {
		q.spare = memory[:0]
	}
	q.busy--
	if q.needsLane() {
		q.busy++
		return true
	}
	return false
}

// needsLane reports whether the calls that wait need another lane. The caller holds the
// lock.
func (q *Queue[T]) needsLane() bool {
	return q.busy < q.config.Lanes && q.waiting > q.busy*q.config.PerLane
}

func (q *Queue[T]) yield() {
	for range q.config.Yields {
		runtime.Gosched()
	}
}

// take removes the next batch from the queue and hands its calls to a sender. It ends
// those whose context has ended. The caller holds the lock.
func (q *Queue[T]) take() []Sent[T] {
	batch := q.spare
	q.spare = nil
	size := 0
	for len(batch) < q.config.MaxCalls && q.first != nil {
		c := q.first
		if err := c.ctx.Err(); err != nil {
			q.remove(c)
			c.err = &Error{Err: err}
			c.enter(done)
			c.wake <- struct{}{}
			continue
		}
		if size += c.Size; size > maxBytes && len(batch) > 0 {
			break
		}
		q.remove(c)
		batch = append(batch, q.hand(c))
	}
	return batch
}

// hand gives c to a sender.
func (q *Queue[T]) hand(c *Call[T]) Sent[T] {
	c.refs.Add(1)
	generation := c.generation()
	to := sent
	if q.config.Begins {
		to = taken
	}
	c.advance(generation, queued, to)
	return Sent[T]{call: c, generation: generation}
}

// push appends c to the queue. The caller holds the lock.
func (q *Queue[T]) push(c *Call[T]) {
	if c.prev = q.last; c.prev != nil {
		c.prev.next = c
	} else {
		q.first = c
	}
	q.last = c
	q.waiting++
}

// remove takes c out of the queue. The caller holds the lock.
func (q *Queue[T]) remove(c *Call[T]) {
	if c.prev != nil {
		c.prev.next = c.next
	} else {
		q.first = c.next
	}
	if c.next != nil {
		c.next.prev = c.prev
	} else {
		q.last = c.prev
	}
	c.prev, c.next = nil, nil
	q.waiting--
}
