package reprise

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/reprise-go/reprise/core/store"
)

// begin finds the result for the operation, counts it, and notifies the observer.
func (e *Engine) begin(ctx context.Context, op *Operation) (res Result, err error) {
	at := now()
	c := newCall(ctx, e, op, at)
	answered, returned := false, false
	defer func() { //nolint:contextcheck // the release is bounded by the engine, not by its client
		switch {
		case !answered: // the store or the observer ended the goroutine
			c.answer(Event{Outcome: Unavailable, Err: errNoReturn}, nil)
		case !returned && res.Attempt != nil: // the observer did, and no handler will run
			e.work.retain() // the attempt ends, and Begin ends too
			_ = res.Attempt.Release()
		}
	}()
	if res.Outcome = c.outcomeInside(ctx); res.Outcome == 0 {
		res, err = c.look(at) //nolint:contextcheck // bounded by the engine, not by its client
		if err == nil && res.Outcome == InProgress && op.Wait > 0 {
			waiting := sinceStart()
			res, err = c.wait(ctx, op.Scope, op.Wait)
			c.waited = sinceStart() - waiting
		}
	}
	switch f, _ := classify(err); {
	case err == nil:
	case c.failOpen && c.seen != 0 && f.unreachable: // this process itself knows of the key
		res, err = Result{Outcome: c.seen}, nil
	case errors.Is(err, store.ErrCorrupt):
		res.Outcome = Corrupt
	case errors.Is(err, store.ErrInvalid):
		res.Outcome = Failed
	default:
		res.Outcome = Unavailable
	}
	answered = true
	if res.Outcome == Replayed && op.Reads {
		res.unread = c.subject
	} else {
		c.answer(Event{Outcome: res.Outcome, Err: err}, res.Attempt)
	}
	returned = true
	return res, err
}

// outcomeInside returns the outcome of an operation that begins inside its own run, with
// a context of that: it would wait for itself, or take over from itself. It is zero
// anywhere else.
func (c *call) outcomeInside(ctx context.Context) Outcome {
	view, _ := AttemptFrom(ctx)
	c.around = view.a
	for a := c.around; a != nil && a.open(); a = a.around {
		switch {
		case a.engine != c.engine || a.id != c.id:
		case a.fingerprint != c.fingerprint:
			return Mismatch
		default:
			return InProgress
		}
	}
	return 0
}

// wait waits for another attempt to end. It answers InProgress when the time is up, a
// limit is reached, or ctx has ended.
func (c *call) wait(ctx context.Context, scope string, patience time.Duration) (Result, error) {
	c.seen = InProgress
	list := &c.engine.waiters
	key := queueKey{id: c.id, fingerprint: c.fingerprint, maxAttempts: c.maxAttempts, failOpen: c.failOpen}
	scope = strings.Clone(scope) // it stays a key of the map while other callers of the scope wait
	w := make(waiter)
	q, ok := list.join(key, scope, w)
	if !ok {
		return Result{Outcome: InProgress}, nil
	}
	defer list.leave(scope, q, w)

	patient, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	select {
	case <-w:
		return c.poll(ctx, patient, q)
	case <-q.done:
		return q.result, q.err
	case <-patient.Done():
		select {
		case <-q.done: // both are ready: prefer the result
			return q.result, q.err
		default:
			return Result{Outcome: InProgress}, nil
		}
	case <-c.engine.work.closing:
		return Result{}, store.ErrClosed
	}
}

// poll asks as the head of a queue until the result is another than InProgress, or its
// client's patience ends.
func (c *call) poll(client, patient context.Context, q *queue) (Result, error) {
	e := c.engine
	c.waiting = true
	// The watch starts before the first look, so that no change is missed between the
	// two.
	changed, stop := e.store.watch(patient, c.id)
	defer stop()
	for every := firstPoll; ; every = min(2*every, longestPoll) {
		switch {
		case e.work.isClosing():
			return Result{}, store.ErrClosed
		case patient.Err() != nil:
			return Result{Outcome: InProgress}, nil
		}
		res, err := c.look(now()) //nolint:contextcheck // bounded by the engine, not by its client
		switch {
		case err == nil && res.Outcome == InProgress:
		case res.Attempt == nil:
			e.waiters.answer(q, res, err)
			return res, err
		case client.Err() != nil: // the client has left
			res.Attempt.releaseUnrun() //nolint:contextcheck // bounded by the engine, not by its client
			return Result{Outcome: InProgress}, nil
		default:
			return res, nil
		}
		next := time.NewTimer(jitter(every))
		select {
		case <-next.C:
		case <-q.wake:
		case _, open := <-changed:
			if !open {
				changed = nil
			}
		case <-patient.Done():
		case <-e.work.closing:
		}
		next.Stop()
	}
}
