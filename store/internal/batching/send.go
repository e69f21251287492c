package batching

import (
	"context"
	"runtime/debug"
	"sync/atomic"
)

// batch counts the callers of a batch.
type batch struct {
	waiting atomic.Int32 // callers that wait for an answer
	cancel  context.CancelFunc
}

// abandoned notes that a caller has returned. The last one ends the batch, because no
// caller would read its answers.
func (b *batch) abandoned() {
	if b != nil && b.waiting.Add(-1) == 0 {
		b.cancel()
	}
}

// answered notes that a caller got its answer. It never ends the batch: Send may have
// something left to do.
func (b *batch) answered() {
	if b != nil {
		b.waiting.Add(-1)
	}
}

// sendBatch sends a batch with a context that ends when all callers have returned.
func (q *Queue[T]) sendBatch(calls []Sent[T]) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	b := &batch{cancel: cancel}
	b.waiting.Store(1) // this function, until all are counted
	q.mu.Lock()
	for _, s := range calls {
		if s.is(sent) || s.is(taken) {
			s.call.batch = b
			b.waiting.Add(1)
		}
	}
	q.mu.Unlock()
	b.abandoned()
	q.send(ctx, calls)
}

// send calls Send, and ends the calls that it should have finished. It returns even if
// Send panics.
func (q *Queue[T]) send(ctx context.Context, calls []Sent[T]) {
	returned := false
	defer func() {
		if returned {
			fail(calls, ErrUnfinished)
		} else {
			fail(calls, &PanicError{Value: recover(), Stack: debug.Stack()})
		}
	}()
	q.config.Send(ctx, calls)
	returned = true
}

// fail ends those of the calls that are not finished.
func fail[T any](calls []Sent[T], cause error) {
	var errs [2]error // for calls that were begun, and for the others
	for _, s := range calls {
		begun := s.is(sent)
		if !begun && !s.is(taken) && !s.is(abandoned) {
			continue
		}
		err := &errs[0]
		if !begun {
			err = &errs[1]
		}
		if *err == nil {
			*err = &Error{Sent: begun, Err: cause}
		}
		s.Finish(*err)
	}
}
