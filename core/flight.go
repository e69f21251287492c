package reprise

import (
	"encoding/binary"
	"sync"
)

// flights is the table of the attempts that run in this process, so that a duplicate that arrives here needs no round trip. An
// ID enters when its claim answered Claimed, and leaves when its attempt is resolved or not believed in any more: from
// then on the store answers. Attempts of one row are linked by Attempt.next, newest first.
type flights [1024]struct {
	mu    sync.Mutex
	first *Attempt
}

// row returns where the attempts with this ID are. IDs are digests, so any part of one spreads well.
func (f *flights) row(id ID) int { return int(binary.LittleEndian.Uint16(id[:])) % len(f) }

func (f *flights) enter(a *Attempt) {
	row := &f[f.row(a.id)]
	row.mu.Lock()
	defer row.mu.Unlock()
	a.next, row.first = row.first, a
}

// leave takes a out, if it is in.
func (f *flights) leave(a *Attempt) {
	row := &f[f.row(a.id)]
	row.mu.Lock()
	defer row.mu.Unlock()
	for at := &row.first; *at != nil; at = &(*at).next {
		if *at == a {
			*at, a.next = a.next, nil
			return
		}
	}
}

// find answers for op from the table: Mismatch or InProgress. Zero means to ask the store.
func (f *flights) find(id ID, fp Fingerprint) Outcome {
	row := &f[f.row(id)]
	row.mu.Lock()
	a := row.first
	for a != nil && a.id != id {
		a = a.next
	}
	row.mu.Unlock()
	switch {
	case a == nil || !a.believed():
		return 0
	case a.fingerprint != fp:
		return Mismatch
	default:
		return InProgress
	}
}
