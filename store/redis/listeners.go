package repriseredis

import (
	"context"
	"fmt"
	"sync"

	"github.com/redis/go-redis/v9"
	"github.com/reprise-go/reprise/core/store"
)

// listeners has one listener for each server that is watched. The zero value is empty.
type listeners struct {
	mu       sync.Mutex
	closed   bool
	byServer map[*redis.Client]*listener
	ending   sync.WaitGroup // of listeners that were replaced
}

// watch listens to a channel of a server until stop is called. The error is
// [store.ErrUnavailable] when the server does not confirm the subscription within 100 ms;
// for the next ten seconds, watches of that server then fail at once. After close, it is
// [store.ErrClosed].
func (s *listeners) watch(ctx context.Context, node *redis.Client, name string) (changed <-chan struct{}, stop func(), err error) {
	l, err := s.listener(node) //nolint:contextcheck // a listener outlives the watch that made it
	if err != nil {
		return nil, nil, err
	}
	return l.watch(ctx, name)
}

func (s *listeners) listener(node *redis.Client) (*listener, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, store.ErrClosed
	}
	if l, ok := s.byServer[node]; ok && !l.isOver() {
		switch silent := l.silentFor(); {
		case silent == 0:
			return l, nil
		case silent < silence:
			return nil, unavailable(errSilent)
		}
		s.ending.Go(l.close) // close may wait for the network
	}
	l := newListener(node)
	if s.byServer == nil {
		s.byServer = make(map[*redis.Client]*listener, 1)
	}
	s.byServer[node] = l
	return l, nil
}

// close wakes all watchers, and waits until the goroutines of the listeners have ended.
func (s *listeners) close() {
	s.mu.Lock()
	s.closed = true
	listeners := s.byServer
	s.byServer = nil
	s.mu.Unlock()
	for _, l := range listeners {
		l.close()
	}
	s.ending.Wait()
}

func unavailable(cause error) error {
	return fmt.Errorf("%w: redis: %v", store.ErrUnavailable, cause) //nolint:errorlint // one class an error, the cause is for people
}
