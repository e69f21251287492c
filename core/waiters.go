package reprise

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/reprise-go/reprise/core/store"
)

// waiters are the callers of this process that wait for attempts of others. Those that
// wait for the same operation form a queue, and only its head asks the store: a result
// serves the whole queue, a claim that is granted is the head's, and then the next one
// asks.
type waiters struct {
	limits WaitLimits

	mu     sync.Mutex
	queues map[store.ID][]*queue // seldom more than one of an ID
	scopes map[string]int
	total  atomic.Int64 // of waiters; written with mu
}

// queueKey is the common parameters of waiters for whom every result means the same.
type queueKey struct {
	id          store.ID
	fingerprint store.Fingerprint
	maxAttempts int
	failOpen    bool
}

type queue struct {
	key      queueKey
	waiters  []waiter      // the first is the head
	wake     chan struct{} // asks the head to look now; capacity 1
	answered bool
	done     chan struct{} // closed when there is a result for all
	result   Result        // valid when done is closed
	err      error
}

// waiter is closed when it becomes the head.
type waiter chan struct{}

const (
	firstPoll   = 25 * time.Millisecond
	longestPoll = 500 * time.Millisecond
)

// join adds w to the queue for key, unless a limit is reached.
func (r *waiters) join(key queueKey, scope string, w waiter) (*queue, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.queues == nil {
		r.queues, r.scopes = make(map[store.ID][]*queue), make(map[string]int)
	}
	if r.total.Load() >= int64(r.limits.Total) || r.scopes[scope] >= r.limits.PerScope {
		return nil, false
	}
	q := r.queue(key)
	if len(q.waiters) >= r.limits.PerKey {
		return nil, false
	}
	r.total.Add(1)
	r.scopes[scope]++
	q.waiters = append(q.waiters, w)
	if q.waiters[0] == w {
		close(w)
	}
	return q, true
}

// queue returns the queue for key, a new one if need be.
func (r *waiters) queue(key queueKey) *queue {
	for _, q := range r.queues[key.id] {
		if q.key == key {
			return q
		}
	}
	q := &queue{key: key, wake: make(chan struct{}, 1), done: make(chan struct{})}
	r.queues[key.id] = append(r.queues[key.id], q)
	return q
}

// leave takes w out of its queue and makes the next one the head.
func (r *waiters) leave(scope string, q *queue, w waiter) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.total.Add(-1)
	if r.scopes[scope]--; r.scopes[scope] == 0 {
		delete(r.scopes, scope)
	}
	place := slices.Index(q.waiters, w)
	q.waiters = slices.Delete(q.waiters, place, place+1)
	switch {
	case q.answered: // all waiters have the result
	case len(q.waiters) == 0:
		r.drop(q)
	case place == 0:
		close(q.waiters[0])
	}
}

// answer gives the head's answer to the whole queue; later callers form a new one.
func (r *waiters) answer(q *queue, res Result, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.drop(q)
	q.answered, q.result, q.err = true, res, err
	close(q.done)
}

// drop removes a queue.
func (r *waiters) drop(q *queue) {
	id := q.key.id
	left := slices.DeleteFunc(r.queues[id], func(other *queue) bool { return other == q })
	if len(left) == 0 {
		delete(r.queues, id)
	} else {
		r.queues[id] = left
	}
}

// wake makes the heads that wait for id look now. Most of the time there are no waiters;
// a head that joins only now reads the store after the change, and needs no signal.
func (r *waiters) wake(id store.ID) {
	if r.total.Load() == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, q := range r.queues[id] {
		signal(q.wake)
	}
}
