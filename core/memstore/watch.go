package memstore

import (
	"context"
	"slices"

	"github.com/reprise-go/reprise/core/store"
)

// Watch implements [store.Waiter]. The channel receives a value each time the ID is
// completed, released, resolved or unknown, and buffers one value; it is never closed. A
// lapse is not announced, because the store has no timer for it. The watch lasts until
// stop is called, even after ctx ends.
func (s *Store) Watch(ctx context.Context, id store.ID) (changed <-chan struct{}, stop func(), err error) {
	if err := checkContext(ctx); err != nil {
		return nil, nil, err
	}
	sh := s.shard(id)
	ch := make(chan struct{}, 1)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	sh.watches[id] = append(sh.watches[id], ch)
	return ch, func() { sh.unwatch(id, ch) }, nil
}

// unwatch ends a watch. A second call is a no-op.
func (sh *shard) unwatch(id store.ID, ch chan struct{}) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	watches := sh.watches[id]
	i := slices.Index(watches, ch)
	switch {
	case i < 0:
	case len(watches) == 1:
		delete(sh.watches, id)
	default:
		sh.watches[id] = slices.Delete(watches, i, i+1)
	}
}

// changed wakes the watchers of id. Each channel has room for one value, which is enough.
func (sh *shard) changed(id store.ID) {
	for _, ch := range sh.watches[id] {
		select {
		case ch <- struct{}{}:
		default:
		}
	}
}
