package reprise

import (
	"context"
	"slices"
	"sync"
	"time"
)

// waitroom holds the callers of this process that wait for attempts of others. Those that wait for the same operation form a
// queue, and only its head asks the store: an answer serves them all, a claim that is granted is the head's, and
// then the next one asks.
type waitroom struct {
	limits WaitLimits

	mu     sync.Mutex
	queues map[queueKey]*queue
	total  int
	scopes map[string]int
}

// queueKey is what two waiters have in common for whom every answer means the same.
type queueKey struct {
	id          ID
	fingerprint Fingerprint
	preset      Preset
	maxAttempts int
}

type queue struct {
	key      queueKey
	waiters  []*waiter     // the first is the head
	wake     chan struct{} // tells the head to look now; capacity 1
	answered bool
	done     chan struct{} // closed when there is an answer for all
	result   Result        // valid when done is closed
	err      error
}

type waiter struct {
	head chan struct{} // closed when the waiter becomes the head
}

const (
	firstPoll   = 25 * time.Millisecond
	longestPoll = 500 * time.Millisecond
)

// wait waits for another attempt to end. It answers InProgress when the time is up, the limits are reached, or ctx ended.
func (a *Attempt) wait(ctx context.Context) (Result, error) {
	room := &a.engine.waitroom
	key := queueKey{a.id, a.op.Fingerprint, a.op.Preset, a.op.MaxAttempts}
	w := &waiter{head: make(chan struct{})}
	q, ok := room.join(key, a.op.Scope, w)
	if !ok {
		return Result{Outcome: InProgress}, nil
	}
	defer room.quit(a.op.Scope, q, w)

	up := time.NewTimer(a.op.Wait)
	defer up.Stop()
	select {
	case <-w.head:
		return a.poll(ctx, q, up.C)
	case <-q.done:
		return q.result, q.err
	case <-up.C:
	case <-ctx.Done():
	case <-a.engine.closing:
		return Result{}, ErrClosed
	}
	return Result{Outcome: InProgress}, nil
}

// poll asks as the head of a queue until the answer is another than InProgress.
func (a *Attempt) poll(ctx context.Context, q *queue, up <-chan time.Time) (Result, error) {
	e := a.engine
	var changed <-chan struct{}
	if e.store.waiter != nil {
		watching, stop, err := e.store.waiter.Watch(ctx, a.id)
		if err == nil {
			defer stop()
			changed = watching
		}
	}
	// Watching comes before the first look, so that no change falls between the two.
	for every := firstPoll; ; every = min(2*every, longestPoll) {
		res, err := a.look()
		if err == nil && res.Outcome == Claimed && ctx.Err() != nil {
			e.also()                  // what the release ends, Begin ends too
			_ = res.Attempt.Release() // nobody is left to run it for; it goes on in the background if it must
			return Result{Outcome: InProgress}, nil
		}
		if err != nil || res.Outcome != InProgress {
			if res.Outcome != Claimed {
				e.waitroom.answer(q, res, err)
			}
			return res, err
		}
		next := time.NewTimer(jitter(every))
		select {
		case <-next.C:
		case <-q.wake:
		case _, open := <-changed:
			if !open {
				changed = nil
			}
		case <-up:
			next.Stop()
			return res, nil
		case <-ctx.Done():
			next.Stop()
			return res, nil
		case <-e.closing:
			next.Stop()
			return Result{}, ErrClosed
		}
		next.Stop()
	}
}

// join adds w to the queue for key, unless a limit is reached.
func (r *waitroom) join(key queueKey, scope string, w *waiter) (*queue, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.queues == nil {
		r.queues, r.scopes = make(map[queueKey]*queue), make(map[string]int)
	}
	q := r.queues[key]
	if q == nil {
		q = &queue{key: key, wake: make(chan struct{}, 1), done: make(chan struct{})}
	}
	if r.total >= r.limits.Total || r.scopes[scope] >= r.limits.PerScope || len(q.waiters) >= r.limits.PerKey {
		return nil, false
	}
	r.total++
	r.scopes[scope]++
	r.queues[key] = q
	q.waiters = append(q.waiters, w)
	if q.waiters[0] == w {
		close(w.head)
	}
	return q, true
}

// quit takes w out of its queue and makes the next one the head.
func (r *waitroom) quit(scope string, q *queue, w *waiter) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.total--
	if r.scopes[scope]--; r.scopes[scope] == 0 {
		delete(r.scopes, scope)
	}
	place := slices.Index(q.waiters, w)
	q.waiters = slices.Delete(q.waiters, place, place+1)
	switch {
	case q.answered: // everybody has been told
	case len(q.waiters) == 0:
		delete(r.queues, q.key)
	case place == 0:
		close(q.waiters[0].head)
	}
}

// answer gives everybody in the queue the head's answer; whoever comes later forms a new one.
func (r *waitroom) answer(q *queue, res Result, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.queues, q.key)
	q.answered, q.result, q.err = true, res, err
	close(q.done)
}

// wake makes the heads that wait for id look now.
func (r *waitroom) wake(id ID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for key, q := range r.queues {
		if key.id == id {
			select {
			case q.wake <- struct{}{}:
			default:
			}
		}
	}
}
