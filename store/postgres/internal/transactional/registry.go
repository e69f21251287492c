package transactional

import (
	"time"

	"github.com/reprise-go/reprise/core/store"
)

// This file keeps the attempts of this process.

// find returns the attempt of owner that runs in this process, or nil.
func (s *Store) find(id store.ID, owner store.Owner) *attempt {
	s.mu.Lock()
	defer s.mu.Unlock()
	if a := s.attempts[owner]; a != nil && a.id == id {
		return a
	}
	return nil
}

// take removes and returns the attempt of owner, which the caller has to end, or returns
// nil.
func (s *Store) take(id store.ID, owner store.Owner) *attempt {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.attempts[owner]
	if a == nil || a.id != id {
		return nil
	}
	delete(s.attempts, owner)
	return a
}

// end releases the slot and the entry of an attempt.
func (s *Store) end(a *attempt) {
	a.close()
	s.mu.Lock()
	if s.running[a.id] == a {
		delete(s.running, a.id)
	}
	s.mu.Unlock()
	s.slots.Release()
}

// setUndecided remembers that owner's last call may or may not have been executed, and
// forgets owners for which that was long ago.
func (s *Store) setUndecided(owner store.Owner) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	for o, since := range s.undecided {
		if now.Sub(since) > 2*s.table.Options.TxTimeout {
			delete(s.undecided, o)
		}
	}
	s.undecided[owner] = now
}

func (s *Store) isUndecided(owner store.Owner) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, found := s.undecided[owner]
	return found
}

func (s *Store) setDecided(owner store.Owner) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.undecided, owner)
}
