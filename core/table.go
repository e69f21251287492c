package reprise

import (
	"encoding/binary"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/reprise-go/reprise/core/store"
)

// table is this process's knowledge about IDs, so that a duplicate that arrives here
// needs no round trip: the attempts that run, and the claims that are on their way to the
// store. An attempt enters when its claim returned Claimed, and leaves when it has ended:
// also in the background. From when its lease is no longer reliable the store decides; an
// operation that fails open is not run beside it even so.
type table [1024]tableRow

type tableRow struct {
	mu       sync.Mutex
	attempts *Attempt     // linked by Attempt.next, newest first
	claims   *sharedClaim // linked by sharedClaim.next
	spare    *sharedClaim // without followers, for the next claim
}

// row returns where an ID is. IDs are digests, so any part of one spreads well.
func (t *table) row(id store.ID) *tableRow {
	return &t[int(binary.LittleEndian.Uint16(id[:]))%len(t)]
}

// sharedClaim is a claim that is on its way to the store. The call that leads it asks;
// those that join it wait for the result.
type sharedClaim struct {
	id          store.ID
	fingerprint store.Fingerprint
	maxAttempts int
	next        *sharedClaim
	done        chan struct{} // closed when there is a result; nil until another call joins

	outcome Outcome // the fields below are valid when done is closed
	payload []byte
	err     error
}

// join returns the known outcome for the operation of c. Otherwise it returns the claim
// that is on its way, to wait for, or a new one that c leads.
func (t *table) join(c *call) (known Outcome, claim *sharedClaim, leads bool) {
	row := t.row(c.id)
	row.mu.Lock()
	defer row.mu.Unlock()
	known, relied := row.find(c)
	if relied {
		return known, nil, false
	}
	if known != 0 {
		c.seen = known
	}
	for claim = row.claims; claim != nil; claim = claim.next {
		if claim.id == c.id {
			if claim.done == nil {
				claim.done = make(chan struct{})
			}
			return 0, claim, false
		}
	}
	if claim, row.spare = row.spare, nil; claim == nil {
		claim = new(sharedClaim)
	}
	claim.id, claim.fingerprint, claim.maxAttempts = c.id, c.fingerprint, c.maxAttempts
	claim.next, row.claims = row.claims, claim
	return 0, claim, true
}

// publish ends a claim with its result, for those that joined it. An attempt enters the
// table in the same step.
func (t *table) publish(claim *sharedClaim, res Result, err error) (_ Result, turnedAway *Attempt) {
	row := t.row(claim.id)
	row.mu.Lock()
	defer row.mu.Unlock()
	for at := &row.claims; *at != nil; at = &(*at).next {
		if *at == claim {
			*at = claim.next
			break
		}
	}
	claim.next = nil
	res, turnedAway = row.enter(res)
	if claim.done == nil {
		row.spare = claim // without a result, so it refers to no payload
	} else {
		claim.outcome, claim.payload, claim.err = res.Outcome, res.Payload, err
		close(claim.done)
	}
	return res, turnedAway
}

// add enters the attempt of a result that was not shared.
func (t *table) add(res Result) (_ Result, turnedAway *Attempt) {
	if res.Attempt == nil {
		return res, nil
	}
	row := t.row(res.Attempt.id)
	row.mu.Lock()
	defer row.mu.Unlock()
	return row.enter(res)
}

// remove takes a out, if it is in.
func (t *table) remove(a *Attempt) {
	row := t.row(a.id)
	row.mu.Lock()
	defer row.mu.Unlock()
	for at := &row.attempts; *at != nil; at = &(*at).next {
		if *at == a {
			*at, a.next = a.next, nil
			return
		}
	}
}

// find answers for c from the attempts that have not ended: Mismatch or InProgress, and
// zero where there is none. relied says that the lease of one of them is relied on;
// otherwise the store is asked.
func (row *tableRow) find(c *call) (known Outcome, relied bool) {
	for a := row.attempts; a != nil && !relied; a = a.next {
		if a.id != c.id {
			continue
		}
		if known, relied = InProgress, a.engine.renewer.holds(a); a.fingerprint != c.fingerprint {
			known = Mismatch
		}
	}
	return known, relied
}

// enter adds the attempt of a result, if it has one. Only this table excludes others
// from an attempt that runs without a granted claim, so neither an unprotected attempt
// that is not alone enters, nor a protected one beside an unprotected one. That is so
// also where the lease of the other one was lost: it may still run.
func (row *tableRow) enter(res Result) (_ Result, turnedAway *Attempt) {
	a := res.Attempt
	if a == nil {
		return res, nil
	}
	if a.unprotected || row.runsUnprotected(a.id) {
		if known, _ := row.find(&a.call); known != 0 {
			return Result{Outcome: known}, a
		}
	}
	a.next, row.attempts = row.attempts, a
	return res, nil
}

// runsUnprotected reports whether an attempt at id runs without a claim.
func (row *tableRow) runsUnprotected(id store.ID) bool {
	for a := row.attempts; a != nil; a = a.next {
		if a.unprotected && a.id == id {
			return true
		}
	}
	return false
}

// answerTo translates the result of a shared claim for a call that joined it. It is not
// ok when the call has to ask again.
//
// A record that is completed stays so, and an attempt of this process was just begun; any
// other result may be older than the call. That of a second claim is not: it was sent
// after the first one, which the call joined, had its result.
func (s *sharedClaim) answerTo(c *call, round int) (res Result, ok bool) {
	if s.err != nil {
		return Result{}, false
	}
	same, fresh := s.fingerprint == c.fingerprint, round > 1
	switch s.outcome {
	case Claimed, Unprotected:
		res.Outcome, ok = InProgress, true
	case Replayed:
		res.Outcome, res.Payload, ok = Replayed, s.payload, true
	case Expired:
		res.Outcome, ok = Expired, true
	case InProgress:
		res.Outcome, ok = InProgress, fresh
	case Lapsed:
		res.Outcome, ok = Lapsed, fresh && (!same || s.maxAttempts == c.maxAttempts)
	default: // Mismatch: of the leading call, and so of those that ask for the same
		return Result{Outcome: Mismatch}, fresh && same
	}
	if !same { // the key belongs to the request of the leading call
		return Result{Outcome: Mismatch}, ok
	}
	return res, ok
}

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
