package repriselocal

import (
	"encoding/binary"
	"math/bits"
	"sync/atomic"

	reprise "github.com/reprise-go/reprise/core"
)

// seen remembers which records were replayed lately, so that one that is replayed again
// enters the cache, and new keys and single retries cost nothing. Its memory does not
// grow: a record takes the place of another one. What it remembers wrongly, or not any
// more, costs a question to the store and no guarantee.
type seen []atomic.Uint32

// newSeen returns a memory for twice as many records as have room in the cache, at most.
func newSeen(bytes int64) seen {
	return make(seen, 1<<min(bits.Len64(uint64(bytes/EntryOverhead)), 20)) //nolint:gosec // positive
}

// slot returns the place of an ID, and what stands there for it. IDs are digests, so any
// part of one spreads well.
func (s seen) slot(id reprise.ID) (slot *atomic.Uint32, mark uint32) {
	v := binary.LittleEndian.Uint64(id[:])
	return &s[v&uint64(len(s)-1)], uint32(v>>32) | 1 //nolint:gosec // half of it
}

func (s seen) has(id reprise.ID) bool {
	slot, mark := s.slot(id)
	return slot.Load() == mark
}

func (s seen) add(id reprise.ID) {
	slot, mark := s.slot(id)
	slot.Store(mark)
}
