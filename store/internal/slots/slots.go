// Package slots bounds how many transactions of handlers are open at once, and how many
// connections writes have.
package slots

import (
	"context"
	"slices"
	"sync"

	"github.com/reprise-go/reprise/core/store"
)

// Slots bounds how many callers hold one at once. The others wait in line, first come,
// first served. Nil has no bound.
type Slots struct {
	Limit int

	mu    sync.Mutex
	used  int
	queue []chan struct{} // each closed when its caller gets a slot
}

// Of returns the slots of a pool of so many connections, of which it spares some for
// others; nil for a pool without a limit, which is 0.
func Of(conns, spare int) *Slots {
	if conns == 0 {
		return nil
	}
	return &Slots{Limit: max(1, conns-spare)}
}

// Take waits for a slot. It returns the error of ctx if that ends first.
func (s *Slots) Take(ctx context.Context) error { return s.take(ctx, false) }

// TakeNext is Take at the head of the line.
func (s *Slots) TakeNext(ctx context.Context) error { return s.take(ctx, true) }

func (s *Slots) take(ctx context.Context, next bool) error {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	if s.used < s.Limit {
		s.used++
		s.mu.Unlock()
		return nil
	}
	granted := make(chan struct{})
	place := len(s.queue)
	if next {
		place = 0
	}
	s.queue = slices.Insert(s.queue, place, granted)
	s.mu.Unlock()
	select {
	case <-granted:
		return nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(s.queue, granted); i >= 0 {
		s.queue = slices.Delete(s.queue, i, i+1)
	} else { // it was granted meanwhile
		s.pass()
	}
	return ctx.Err()
}

// Release passes a slot on to the caller at the head of the line.
func (s *Slots) Release() {
	if s == nil {
		return
	}
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
	close(s.queue[0])
	s.queue = slices.Delete(s.queue, 0, 1)
}

// Usage says how many slots are taken, and how many callers wait for one.
func (s *Slots) Usage() []store.Usage {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return []store.Usage{{Name: "slots", Used: int64(s.used), Limit: int64(s.Limit), Waiting: int64(len(s.queue))}}
}
