package matrix

import (
	"sync"
	"testing"

	"github.com/reprise-go/reprise/conformance"
	"github.com/reprise-go/reprise/conformance/cmd/serve"
	"github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
)

// matrixStore is a row of the matrix: a store that every adapter is served over.
type matrixStore struct {
	name    string
	atomic  bool
	waivers []conformance.Waiver // of every adapter over it

	// connect returns what opens handles for one case. It is called once for each combination; what the returned function is
	// called for shares the backing store, and gets a handle of its own where the store has handles.
	connect func(testing.TB) (perCase func() func(testing.TB) reprise.Store)
}

// matrixAdapter is a column of the matrix.
type matrixAdapter struct {
	name    string
	waivers []conformance.Waiver // over every store
}

var matrixStores = []matrixStore{
	{
		name: "memory",
		connect: func(testing.TB) func() func(testing.TB) reprise.Store {
			return func() func(testing.TB) reprise.Store {
				store := sync.OnceValue(memstore.New)
				return func(testing.TB) reprise.Store { return store() }
			}
		},
	},
}

var matrixAdapters = []matrixAdapter{
	{name: "nethttp"},
}

// TestMatrix runs every case for adapters on every adapter over every store.
func TestMatrix(t *testing.T) {
	t.Parallel()
	for _, store := range matrixStores {
		t.Run("store="+store.name, func(t *testing.T) {
			t.Parallel()
			for _, adapter := range matrixAdapters {
				t.Run("adapter="+adapter.name, func(t *testing.T) {
					t.Parallel()
					perCase := store.connect(t)
					conformance.RunAdapter(t, func(testing.TB) conformance.AdapterFixture {
						return conformance.AdapterFixture{
							Open: perCase(), Serve: serve.Adapter(adapter.name), Advance: conformance.Sleep, Atomic: store.atomic,
							Waivers: append(adapter.waivers[:len(adapter.waivers):len(adapter.waivers)], store.waivers...),
						}
					})
				})
			}
		})
	}
}
