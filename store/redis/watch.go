package repriseredis

import (
	"context"
	"sync"

	"github.com/redis/go-redis/v9"
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
	l, err := s.watches.listener(node) //nolint:contextcheck // a listener outlives the watch that made it
	if err != nil {
		return nil, nil, err
	}
	return l.watch(ctx, key)
}

// Close ends all watches, which are notified, and waits until their goroutines have
// ended; later watches fail with [store.ErrClosed]. The client stays open, and all
// other methods keep working. Close may be called more than once.
func (s *Store) Close() error {
	s.watches.close()
	if s.pipelines != nil {
		s.pipelines.close()
		s.pipelines.working.Wait()
	}
	return nil
}

// watches has one listener for each server that is watched.
type watches struct {
	mu        sync.Mutex
	closed    bool
	listeners map[*redis.Client]*listener
	ending    sync.WaitGroup // of listeners that were replaced
}

func (w *watches) listener(node *redis.Client) (*listener, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil, store.ErrClosed
	}
	if l, ok := w.listeners[node]; ok && !l.isOver() {
		switch silent := l.silentFor(); {
		case silent == 0:
			return l, nil
		case silent < silence:
			return nil, fail(store.ErrUnavailable, errSilent)
		}
		w.ending.Go(l.close) // which may wait for the network
	}
	l := newListener(node)
	if w.listeners == nil {
		w.listeners = make(map[*redis.Client]*listener, 1)
	}
	w.listeners[node] = l
	return l, nil
}

func (w *watches) close() {
	w.mu.Lock()
	w.closed = true
	listeners := w.listeners
	w.listeners = nil
	w.mu.Unlock()
	for _, l := range listeners {
		l.close()
	}
	w.ending.Wait()
}
