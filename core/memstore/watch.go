package memstore

import (
	"context"
	"slices"

	"github.com/reprise-go/reprise/core/store"
)

// Watch implements [store.Waiter]. The channel receives a value each time the ID is
// completed, released or resolved, and holds one while nobody receives; it is never
// closed. A lapse is not announced: nothing happens in the store at that instant. The
// watch lasts until stop is called, whatever becomes of ctx.
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

// unwatch ends a watch. Ending it again finds nothing to end.
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

// changed wakes whoever watches id. Each channel has room for one value, and one says as
// much as two.
func (sh *shard) changed(id store.ID) {
	for _, ch := range sh.watches[id] {
		select {
		case ch <- struct{}{}:
		default:
		}
	}
}
