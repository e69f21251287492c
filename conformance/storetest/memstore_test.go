package storetest_test

import (
	"sync"
	"testing"

	"github.com/reprise-go/reprise/conformance/storetest"
	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
)

// The embedded store reads package time, so its fixture has no Advance and every case runs in a bubble.
func TestMemstore(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(testing.TB) storetest.Fixture {
		store := sync.OnceValue(memstore.New)
		return storetest.Fixture{Open: func(testing.TB) reprise.Store { return store() }}
	})
}

func BenchmarkMemstore(b *testing.B) {
	storetest.Benchmark(b, func(b testing.TB) reprise.Store {
		store, err := memstore.NewBounded(memstore.Bounds{Records: 1 << 30, Bytes: 1 << 40}) // no benchmark fills it
		if err != nil {
			b.Fatal(err)
		}
		return store
	})
}
