package repriseredis

import (
	"context"

	"github.com/reprise-go/reprise/core/store"
)

// Watch implements [store.Waiter] with sharded pub/sub. The first watch opens one
// connection to each server that is watched; it stays until [Store.Close]. The error is
// [store.ErrUnavailable] when the server does not confirm the subscription within 100
// ms, as without the permission for the channel; for the next ten seconds it then comes
// at once.
func (s *Store) Watch(ctx context.Context, id store.ID) (changed <-chan struct{}, stop func(), err error) {
	key := s.key(id)
	node, err := s.nodeFor(ctx, key)
	if err != nil {
		return nil, nil, fail(classify(err).class, err)
	}
	return s.watches.Watch(ctx, node, key)
}

// Close ends all watches, which are notified, and waits until their goroutines have
// ended; later watches fail with [store.ErrClosed]. The client stays open, and all
// other methods keep working. Close may be called more than once.
func (s *Store) Close() error {
	s.watches.Close()
	s.pipelines.Close()
	s.pipelines.Wait()
	return nil
}
