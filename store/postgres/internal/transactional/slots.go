package transactional

import (
	"context"
	"sync"
	"time"
)

// slots bounds how many attempts run at once. Claims beyond the bound wait in a queue,
// first come, first served.
type slots struct {
	limit int

	mu      sync.Mutex
	used    int
	queue   []*queued
	longest time.Duration // of the waits that ended
}

// queued is a claim that waits for a slot.
type queued struct {
	since   time.Time
	granted chan struct{} // closed when the slot is the claim's
}

// enqueue takes a slot, or a place in the queue for one. take or leave has to follow.
func (s *slots) enqueue() *queued {
	q := &queued{since: time.Now(), granted: make(chan struct{})}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.used < s.limit {
		s.used++
		close(q.granted)
		return q
	}
	s.queue = append(s.queue, q)
	return q
}

// within reports whether the slot is granted within d.
func (q *queued) within(d time.Duration) bool {
	select {
	case <-q.granted:
		return true
	default:
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-q.granted:
		return true
	case <-timer.C:
		return false
	}
}

// take waits for the slot, or leaves the queue and returns the error of ctx.
func (s *slots) take(ctx context.Context, q *queued) error {
	select {
	case <-q.granted:
		return nil
	default:
	}
	select {
	case <-q.granted:
		return nil
	case <-ctx.Done():
		s.leave(q)
		return ctx.Err()
	}
}

// leave gives the place in the queue up, or the slot.
func (s *slots) leave(q *queued) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.queue {
		if s.queue[i] == q {
			s.queue = append(s.queue[:i], s.queue[i+1:]...)
			s.noteWait(q)
			return
		}
	}
	s.pass() // granted in the meantime
}

// release gives a slot back, to the claim that has waited longest.
func (s *slots) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pass()
}

// pass hands one slot on. The caller holds mu.
func (s *slots) pass() {
	if len(s.queue) == 0 {
		s.used--
		return
	}
	next := s.queue[0]
	s.queue[0] = nil
	s.queue = s.queue[1:]
	s.noteWait(next)
	close(next.granted)
}

func (s *slots) noteWait(q *queued) { s.longest = max(s.longest, time.Since(q.since)) }

// Stats shows how the attempts of a store use its connections.
type Stats struct {
	Slots       int           // attempts that may run at once
	InUse       int           // attempts that run
	Waiting     int           // claims that wait for one of them to end
	LongestWait time.Duration // of a claim, since the store was made
}

func (s *slots) stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	longest := s.longest
	if len(s.queue) > 0 {
		longest = max(longest, time.Since(s.queue[0].since))
	}
	return Stats{Slots: s.limit, InUse: s.used, Waiting: len(s.queue), LongestWait: longest}
}
