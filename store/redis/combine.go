package repriseredis

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Limits of the combiner.
const (
	// lanes is the number of batches that are on their way to a server at once. A lane is
	// busy for a round trip, so a small number loses on a slow network: see
	// docs/redis.md.
	lanes = 16

	mostCombined    = 128       // commands in a batch
	mostBytes       = 256 << 10 // payloads of a batch, together
	largestCombined = 64 << 10  // payload of a command that may be in a batch

	// leastPatience is the time that a command needs to have left to be in a batch: the
	// earliest deadline in a batch is the deadline of all its commands.
	leastPatience = 100 * time.Millisecond
)

// combiner sends the commands of concurrent calls in batches. A batch is one pipeline; a
// lane is room for one batch on its way to the server. A command that finds a free lane
// is sent at once. The others queue, and the goroutine of the oldest becomes the leader
// of the next batch when a lane becomes free. There is no timer and no goroutine of its
// own.
type combiner struct {
	// transmit makes one attempt on a batch. Each command carries its error. It returns a
	// function that waits for the confirmation of those that are marked unconfirmed, nil
	// when there are none.
	transmit func(ctx context.Context, batch []*command) (confirm func())
	lanes    int
	wakes    sync.Pool // of channels

	mu    sync.Mutex
	busy  int        // lanes with a batch on its way
	queue []*command // not empty only while all lanes are busy
	spare []*command // memory for the next queue
}

func newCombiner(transmit func(context.Context, []*command) func()) *combiner {
	return &combiner{transmit: transmit, lanes: lanes}
}

// queued is the part of a command that belongs to the combiner. The goroutine of the
// command waits for wake, which receives once, and then does what the other fields say.
type queued struct {
	ctx      context.Context
	wake     chan struct{}
	batch    []*command // a batch to send or, with confirm, to confirm; itself first
	confirm  func()
	expelled bool // it has to be sent alone: too little time was left for a batch
}

// combines reports whether c may be in a batch. Renewals are batches already.
func (b *combiner) combines(c *command) bool {
	return b != nil && c.script != renewScript && len(c.payload) <= largestCombined
}

// send sends the one command of open, alone or in a batch. It returns when the command
// has its answer or its error. A command whose ctx ends while it queues is withdrawn
// unsent; once it was sent, the deadline of its batch counts.
func (b *combiner) send(ctx context.Context, open []*command) {
	c := open[0]
	b.mu.Lock()
	if b.busy < b.lanes {
		b.busy++
		b.mu.Unlock()
		b.sendBatch(ctx, open, nil)
		return
	}
	if !patient(ctx) {
		b.mu.Unlock()
		b.sendAlone(ctx, open)
		return
	}
	c.queued = queued{ctx: ctx, wake: b.newWake()}
	b.queue = append(b.queue, c)
	b.mu.Unlock()

	select {
	case <-c.wake:
	case <-ctx.Done():
		if b.withdraw(c) {
			c.SetErr(unsent{ctx.Err()})
			b.wakes.Put(c.wake)
			return
		}
		<-c.wake
	}
	b.wakes.Put(c.wake)
	switch {
	case c.confirm != nil:
		confirmBatch(c.batch, c.confirm)
	case c.batch != nil:
		b.lead(c.batch) //nolint:contextcheck // in the context of the earliest deadline
	}
	if c.expelled {
		b.sendAlone(ctx, open)
	}
}

func (b *combiner) newWake() chan struct{} {
	if wake, ok := b.wakes.Get().(chan struct{}); ok {
		return wake
	}
	return make(chan struct{}, 1)
}

// withdraw removes c from the queue and reports whether it was there.
func (b *combiner) withdraw(c *command) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	at := slices.Index(b.queue, c)
	if at < 0 {
		return false
	}
	b.queue = slices.Delete(b.queue, at, at+1)
	return true
}

// patient reports whether ctx leaves a command enough time to be in a batch.
func patient(ctx context.Context) bool {
	deadline, bounded := ctx.Deadline()
	return ctx.Err() == nil && (!bounded || time.Until(deadline) >= leastPatience)
}

// lead sends a batch whose first command belongs to the calling goroutine. Commands with
// too little time left are expelled. Where the leader is one of them, the next command
// leads.
func (b *combiner) lead(batch []*command) {
	leader := batch[0]
	ready := batch[:0]
	for _, c := range batch {
		if patient(c.ctx) {
			ready = append(ready, c)
			continue
		}
		c.expelled = true
		if c != leader {
			c.wake <- struct{}{}
		}
	}
	clear(batch[len(ready):])
	switch {
	case len(ready) == 0:
		b.free(batch)
	case ready[0] != leader:
		ready[0].batch = ready
		ready[0].wake <- struct{}{}
	default:
		b.sendBatch(earliest(ready), ready, ready)
	}
}

// earliest returns the context of batch with the earliest deadline.
func earliest(batch []*command) context.Context {
	first := batch[0]
	until, bounded := first.ctx.Deadline()
	for _, c := range batch[1:] {
		if d, ok := c.ctx.Deadline(); ok && (!bounded || d.Before(until)) {
			first, until, bounded = c, d, true
		}
	}
	return first.ctx
}

// sendBatch sends a batch, frees its lane, wakes the other goroutines that have their
// answer, and sees to it that the rest is confirmed. The calling goroutine is that of
// batch[0]. Memory is what may be reused afterwards.
func (b *combiner) sendBatch(ctx context.Context, batch, memory []*command) {
	leader := batch[0]
	open, confirm := b.answer(ctx, batch, memory)
	switch {
	case confirm == nil:
	case open[0] == leader:
		confirmBatch(open, confirm)
	default: // the leader has its answer and does not wait for replicas
		open[0].batch, open[0].confirm = open, confirm
		open[0].wake <- struct{}{}
	}
}

// answer transmits a batch and returns the commands that still have to be confirmed, and
// how.
func (b *combiner) answer(ctx context.Context, batch, memory []*command) (open []*command, confirm func()) {
	defer func() { // also where a hook of the client panics: an attempt without an answer may have been executed
		leader := batch[0]
		for _, c := range batch {
			switch {
			case confirm != nil && c.unconfirmed:
				open = append(open, c)
			case c != leader:
				c.wake <- struct{}{}
			}
		}
		b.free(memory)
	}()
	return nil, b.transmit(ctx, batch)
}

// confirmBatch runs confirm and wakes the goroutines of all commands but the first, which
// is the caller's.
func confirmBatch(batch []*command, confirm func()) {
	defer func() {
		for _, c := range batch[1:] {
			c.wake <- struct{}{}
		}
	}()
	confirm()
}

// sendAlone sends a command outside of the lanes.
func (b *combiner) sendAlone(ctx context.Context, open []*command) {
	if ctx.Err() != nil {
		open[0].SetErr(unsent{ctx.Err()})
		return
	}
	if confirm := b.transmit(ctx, open); confirm != nil {
		confirm()
	}
}

// free gives a lane to the next batch, or frees it. The memory of the batch that was sent
// is reused.
func (b *combiner) free(memory []*command) {
	clear(memory)
	b.mu.Lock()
	if cap(memory) > cap(b.spare) {
		b.spare = memory[:0]
	}
	if len(b.queue) == 0 {
		b.busy--
		b.mu.Unlock()
		return
	}
	n := batchSize(b.queue)
	next := b.queue[:n:n]
	b.queue, b.spare = append(b.spare, b.queue[n:]...), nil
	b.mu.Unlock()
	next[0].batch = next
	next[0].wake <- struct{}{}
}

// batchSize returns how many commands of queue make up the next batch, at least one.
func batchSize(queue []*command) int {
	bytes := 0
	for n, c := range queue[:min(len(queue), mostCombined)] {
		if bytes += len(c.payload); bytes > mostBytes && n > 0 {
			return n
		}
	}
	return min(len(queue), mostCombined)
}
