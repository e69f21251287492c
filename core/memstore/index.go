package memstore

import (
	"encoding/binary"
	"math/bits"
	"math/rand/v2"

	"github.com/reprise-go/reprise/core/store"
)

// index finds the records of a shard by their IDs. It is a hash table with linear
// probing. A slot has the hash of 8 bytes of the ID beside the record, so that probing
// and growing seldom touch a record; the whole ID decides.
type index struct {
	slots []slot // a power of two of them, at most three quarters in use
	shift int    // of a hash, to its first slot
	count int
	seed  uint64 // odd, and random: clients that choose keys cannot choose their slots
}

type slot struct {
	hash uint64
	rec  *record // nil: the slot is free
}

const firstSlots = 8

func newIndex() index {
	return index{
		slots: make([]slot, firstSlots), shift: 64 - bits.TrailingZeros(firstSlots),
		seed: rand.Uint64() | 1, //nolint:gosec // a client sees neither it nor the slots
	}
}

// hash spreads 8 bytes of an ID. They are not those that choose the shard.
func (x *index) hash(id *store.ID) uint64 {
	return binary.LittleEndian.Uint64(id[8:]) * x.seed
}

// find returns the record of id, and the slot that it is in. Without a record it returns
// nil and the slot to [index.insert] one in, which is valid until the index changes.
func (x *index) find(id *store.ID) (rec *record, at int) {
	hash := x.hash(id)
	for at = int(hash >> x.shift); ; at = x.next(at) { //nolint:gosec // shifted to the number of slots
		s := &x.slots[at]
		if s.rec == nil || s.hash == hash && s.rec.id == *id {
			return s.rec, at
		}
	}
}

// insert puts a record into the slot that find returned.
func (x *index) insert(at int, rec *record) {
	x.slots[at] = slot{x.hash(&rec.id), rec}
	if x.count++; 4*x.count > 3*len(x.slots) {
		x.grow()
	}
}

// grow doubles the slots.
func (x *index) grow() {
	old := x.slots
	x.slots = make([]slot, 2*len(old))
	x.shift--
	for _, s := range old {
		if s.rec == nil {
			continue
		}
		at := x.home(s)
		for x.slots[at].rec != nil {
			at = x.next(at)
		}
		x.slots[at] = s
	}
}

// remove takes a record out, and moves those behind it that would not be found any more.
func (x *index) remove(rec *record) {
	_, free := x.find(&rec.id)
	x.slots[free] = slot{}
	x.count--
	for at := x.next(free); x.slots[at].rec != nil; at = x.next(at) {
		if x.distance(x.home(x.slots[at]), at) >= x.distance(free, at) {
			x.slots[free], x.slots[at] = x.slots[at], slot{}
			free = at
		}
	}
}

// home returns the first slot for the record of s.
func (x *index) home(s slot) int { return int(s.hash >> x.shift) } //nolint:gosec // shifted to the number of slots

func (x *index) next(at int) int { return (at + 1) & (len(x.slots) - 1) }

// distance returns how many steps it is from one slot to another.
func (x *index) distance(from, to int) int { return (to - from) & (len(x.slots) - 1) }
