package batching

import (
	"context"
	"sync/atomic"
)

// phase is where a call is between its caller and its sender.
type phase uint64

const (
	idle      phase = iota // only its caller has it
	queued                 // in the list of the queue
	taken                  // a sender has it but has not begun it; its caller waits
	sent                   // a sender has it; its caller waits
	abandoned              // a sender has it; its caller has returned
	done                   // finished

	phaseBits = 3
)

// Call is a call and its answer, in memory that [Queue.Call] and [Call.Release] use again
// and again. A caller sets Value and Size before [Queue.Do], which it calls once.
type Call[T any] struct {
	// Value holds the request and, later, the answer. It keeps the value of the last call,
	// so that its memory can be reused.
	Value T

	// Size is how much the call adds to the size of its batch, in bytes.
	Size int

	queue *Queue[T]
	state atomic.Uint64 // generation and phase
	refs  atomic.Int32  // the caller's, and one for each sender that has it
	wake  chan struct{} // receives once for each Do that its sender finishes
	err   error         // set before wake receives

	// Set by Do and by the queue, with its lock held.
	ctx        context.Context
	batch      *batch
	prev, next *Call[T]
	alone      [1]Sent[T] // a batch of this call
}

// Release returns the call to its queue. The caller must not use it afterwards. If a
// sender still has the call, its memory is reused once the sender has finished it.
func (c *Call[T]) Release() { c.drop() }

func (c *Call[T]) drop() {
	if c.refs.Add(-1) == 0 {
		c.enter(idle)
		c.ctx, c.batch, c.err = nil, nil, nil
		c.queue.calls.Put(c)
	}
}

// enter starts a new generation, in which no older [Sent] can finish the call.
func (c *Call[T]) enter(p phase) (generation uint64) {
	generation = c.state.Load()>>phaseBits + 1
	c.state.Store(generation<<phaseBits | uint64(p))
	return generation
}

// advance changes the phase of one generation, and reports whether it was from.
func (c *Call[T]) advance(generation uint64, from, to phase) bool {
	return c.state.CompareAndSwap(generation<<phaseBits|uint64(from), generation<<phaseBits|uint64(to))
}

func (c *Call[T]) generation() uint64 { return c.state.Load() >> phaseBits }

func (c *Call[T]) phase() phase { return phase(c.state.Load() & (1<<phaseBits - 1)) }

// Sent is a call that a sender has. It is valid for one Do: it has no effect once it was
// finished and its call is used again.
type Sent[T any] struct {
	call       *Call[T]
	generation uint64
}

// Value returns the value of the call, to read the request and to set the answer. It may
// be used until Finish is called.
func (s Sent[T]) Value() *T { return &s.call.Value }

// is reports whether the call is in a phase of this Do.
func (s Sent[T]) is(p phase) bool {
	return s.call.state.Load() == s.generation<<phaseBits|uint64(p)
}

// Begin marks the call as sent, and reports whether its caller still waits. If not, the
// call was withdrawn, and the sender only has to finish it. See [Config.Begins].
func (s Sent[T]) Begin() bool {
	return s.call.advance(s.generation, taken, sent) || s.is(sent)
}

// Finish ends the call with err, which [Queue.Do] returns, or nil. It reports whether
// the caller was waiting. Only the first Finish counts.
func (s Sent[T]) Finish(err error) bool {
	c := s.call
	if c.advance(s.generation, sent, done) || c.advance(s.generation, taken, done) {
		c.batch.answered()
		c.err = err
		c.wake <- struct{}{}
		c.drop()
		return true
	}
	if c.advance(s.generation, abandoned, done) {
		c.drop()
	}
	return false
}
