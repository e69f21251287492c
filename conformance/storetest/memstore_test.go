package storetest_test

import (
	"sync"
	"testing"

	"github.com/reprise-go/reprise/conformance/faultstore"
	"github.com/reprise-go/reprise/conformance/storetest"
	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
)

// The embedded store reads package time, so its fixture has no Advance and every case
// runs in a bubble.
func TestMemstore(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(testing.TB) storetest.Fixture {
		store := sync.OnceValue(memstore.New)
		return storetest.Fixture{Open: func(testing.TB) reprise.Store { return store() }}
	})
}

// A decorator has the abilities of the store inside, so the suite skips nothing over one.
func TestDecoratedStore(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(testing.TB) storetest.Fixture {
		inner := sync.OnceValue(memstore.New)
		return storetest.Fixture{Open: func(tb testing.TB) reprise.Store {
			store, faults := faultstore.New(inner())
			tb.Cleanup(faults.Close)
			if abilitiesOf(store) != abilitiesOf(inner()) {
				tb.Errorf("%+v, want %+v", abilitiesOf(store), abilitiesOf(inner()))
			}
			return store
		}}
	})
}

type abilities struct{ binder, waiter, purger, checker, inspector bool }

func abilitiesOf(store reprise.Store) (a abilities) {
	_, a.binder = reprise.As[reprise.ContextBinder](store)
	_, a.waiter = reprise.As[reprise.Waiter](store)
	_, a.purger = reprise.As[reprise.Purger](store)
	_, a.checker = reprise.As[reprise.Checker](store)
	_, a.inspector = reprise.As[reprise.Inspector](store)
	return a
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
