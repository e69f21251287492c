package reprise

import "sync"

// flights is the table of the attempts that run in this process, so that a duplicate that arrives here needs no round trip. An
// ID enters when its claim answered Claimed, and leaves when its attempt is resolved or not believed in any more: from
// then on the store answers.
type flights [64]struct {
	mu sync.Mutex
	m  map[ID]*Attempt
	_  [48]byte // keeps neighbours off one cache line
}

func (f *flights) enter(a *Attempt) {
	s := &f[a.id[0]%uint8(len(f))]
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.m == nil {
		s.m = make(map[ID]*Attempt)
	}
	s.m[a.id] = a
}

func (f *flights) leave(a *Attempt) {
	s := &f[a.id[0]%uint8(len(f))]
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.m[a.id] == a {
		delete(s.m, a.id)
	}
}

// find answers for op from the table: Mismatch or InProgress. Zero means to ask the store.
func (f *flights) find(id ID, fp Fingerprint) Outcome {
	s := &f[id[0]%uint8(len(f))]
	s.mu.Lock()
	a := s.m[id]
	s.mu.Unlock()
	switch {
	case a == nil || !a.believed():
		return 0
	case a.fingerprint != fp:
		return Mismatch
	default:
		return InProgress
	}
}
