package memstore

import (
	"math/rand/v2"
	"testing"

	"github.com/reprise-go/reprise/core/store"
)

// After any sequence of insertions and removals the index finds exactly the entries of a
// map, also for IDs that share the 8 bytes that it hashes.
func TestIndexAgreesWithAMap(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		ids     int
		hashes  uint64 // how many different ones
		removes int    // of ten steps
	}{
		{"few IDs", 12, 12, 5},
		{"equal hashes", 60, 1, 5},
		{"some equal hashes", 200, 40, 5},
		{"growing", 5000, 5000, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(20) {
				random := rand.New(rand.NewPCG(seed, 1))
				x, want := newIndex(), make(map[store.ID]*record)
				ids := make([]store.ID, c.ids)
				for i := range ids {
					ids[i] = store.ID{16: byte(i), byte(i >> 8)}
					copy(ids[i][8:16], numbered(i%int(c.hashes)))
				}
				for range 4 * c.ids {
					id := ids[random.IntN(len(ids))]
					rec, at := x.find(&id)
					if rec != want[id] {
						t.Fatalf("seed %d: found %p, want %p", seed, rec, want[id])
					}
					switch remove := random.IntN(10) < c.removes; {
					case rec == nil && !remove:
						want[id] = &record{id: id}
						x.insert(at, want[id])
					case rec != nil && remove:
						x.remove(rec)
						delete(want, id)
					}
				}
				for i := range ids {
					if rec, _ := x.find(&ids[i]); rec != want[ids[i]] {
						t.Fatalf("seed %d: at the end found %p, want %p", seed, rec, want[ids[i]])
					}
				}
				if x.count != len(want) || 4*x.count > 3*len(x.slots) {
					t.Fatalf("seed %d: counts %d of %d records in %d slots", seed, x.count, len(want), len(x.slots))
				}
			}
		})
	}
}

// Clients that choose keys cannot choose their slots: two indexes place the same IDs
// differently.
func TestIndexesAreSeeded(t *testing.T) {
	t.Parallel()
	slots := func() (at [firstSlots / 2]int) {
		x := newIndex()
		for i := range at {
			rec := &record{}
			copy(rec.id[8:16], numbered(i))
			_, at[i] = x.find(&rec.id)
			x.insert(at[i], rec)
		}
		return at
	}
	const indexes = 20
	first := slots()
	for range indexes {
		if slots() != first {
			return
		}
	}
	t.Errorf("%d indexes placed the same IDs in the slots %v", indexes, first)
}

// numbered returns 8 bytes that differ for different n.
func numbered(n int) []byte {
	return []byte{byte(n), byte(n >> 8), byte(n >> 16), 0, 0, 0, 0, 1}
}
