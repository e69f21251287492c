package conformance_test

import (
	"sync"
	"testing"

	"github.com/reprise-go/reprise/conformance"
	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
)

// The embedded store reads package time, so its fixture has no Advance and every case runs in a bubble.
func TestMemstore(t *testing.T) {
	t.Parallel()
	conformance.RunStore(t, func(testing.TB) conformance.StoreFixture {
		store := sync.OnceValue(memstore.New)
		return conformance.StoreFixture{Open: func(testing.TB) reprise.Store { return store() }}
	})
}

func BenchmarkMemstore(b *testing.B) {
	conformance.RunStoreBenchmarks(b, func(b testing.TB) reprise.Store {
		store, err := memstore.NewBounded(memstore.Bounds{Records: 1 << 30, Bytes: 1 << 40}) // no benchmark fills it
		if err != nil {
			b.Fatal(err)
		}
		return store
	})
}
