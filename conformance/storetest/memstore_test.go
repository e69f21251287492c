package storetest_test

import (
	"sync"
	"testing"

	"github.com/reprise-go/reprise/conformance/faultstore"
	"github.com/reprise-go/reprise/conformance/storetest"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/store"
)

// A decorator has the abilities of the wrapped store, so the suite skips no case. The
// embedded store reads package time, so its fixture has no Advance and every case runs in
// a bubble.
func TestDecoratedStore(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(testing.TB) storetest.Fixture {
		inner := sync.OnceValue(memstore.New)
		return storetest.Fixture{Open: func(tb testing.TB) store.Store {
			store, faults := faultstore.New(inner())
			tb.Cleanup(faults.Close)
			if abilitiesOf(store) != abilitiesOf(inner()) {
				tb.Errorf("%+v, want %+v", abilitiesOf(store), abilitiesOf(inner()))
			}
			return store
		}}
	})
}

type abilities struct{ waiter, purger, checker, inspector bool }

func abilitiesOf(st store.Store) (a abilities) {
	_, a.waiter = store.As[store.Waiter](st)
	_, a.purger = store.As[store.Purger](st)
	_, a.checker = store.As[store.Checker](st)
	_, a.inspector = store.As[store.Inspector](st)
	return a
}
