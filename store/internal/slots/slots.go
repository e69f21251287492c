// Package slots bounds how many attempts of a transactional store run at once.
package slots

import (
	"context"
	"sync"
	"time"
)

// Slots bounds how many attempts run at once. Claims beyond the bound wait in a queue,
// first come, first served.
type Slots struct {
	Limit int

	mu      sync.Mutex
	used    int
	queue   []*Place
	longest time.Duration // the longest of the waits that ended
}

// Place is a claim that waits for a slot.
type Place struct {
	since   time.Time
	granted chan struct{} // closed when the claim gets the slot
}

// Enqueue takes a slot, or a place in the queue for one. Take or Leave has to follow.
func (s *Slots) Enqueue() *Place {
	q := &Place{since: time.Now(), granted: make(chan struct{})}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.used < s.Limit {
		s.used++
		close(q.granted)
		return q
	}
	s.queue = append(s.queue, q)
	return q
}

// Within reports whether the slot is granted within d.
func (q *Place) Within(d time.Duration) bool {
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

// Take waits for the slot, or leaves the queue and returns the error of ctx.
func (s *Slots) Take(ctx context.Context, q *Place) error {
	select {
	case <-q.granted:
		return nil
	default:
	}
	select {
	case <-q.granted:
		return nil
	case <-ctx.Done():
		s.Leave(q)
		return ctx.Err()
	}
}

// Leave gives up the place in the queue, or the slot if it was granted.
func (s *Slots) Leave(q *Place) {
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

// Release passes a slot on to the claim that has waited longest.
func (s *Slots) Release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pass()
}

// pass hands one slot on. The caller holds mu.
func (s *Slots) pass() {
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

func (s *Slots) noteWait(q *Place) { s.longest = max(s.longest, time.Since(q.since)) }

// Stats shows how the attempts of a store use its connections.
type Stats struct {
	Slots       int           // attempts that may run at once
	InUse       int           // attempts that run
	Waiting     int           // claims that wait for one of them to end
	LongestWait time.Duration // the longest wait of a claim since the store was made
}

// Stats returns how many attempts run, and how many claims wait for one of them to end.
func (s *Slots) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	longest := s.longest
	if len(s.queue) > 0 {
		longest = max(longest, time.Since(s.queue[0].since))
	}
	return Stats{Slots: s.Limit, InUse: s.used, Waiting: len(s.queue), LongestWait: longest}
}
