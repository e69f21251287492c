package repriseetcd

import (
	"context"
	"errors"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/reprise-go/reprise/core/store"
)

// Watch implements [store.Waiter]. The channel receives a value after the key of the
// record was written or deleted, and is closed when the watch ends. The error is
// [store.ErrUnavailable] when no member confirms the watch within a second: until then
// the request that waits does not poll, which other members may answer.
func (s *Store) Watch(ctx context.Context, id store.ID) (changed <-chan struct{}, stop func(), err error) {
	ctx, done := context.WithTimeout(ctx, time.Second)
	defer done()
	if err := s.ready(ctx); err != nil {
		return nil, nil, err
	}
	// The client uses the context values of the first watch for all watches.
	watch, cancel := context.WithCancel(context.Background())
	events := s.client.Watch(clientv3.WithRequireLeader(watch), s.key(records, id), clientv3.WithCreatedNotify()) //nolint:contextcheck // so its context must not be a caller's
	select {
	case first, open := <-events:
		if err = first.Err(); !open {
			err = errors.New("the client is closed")
		}
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err != nil {
		cancel()
		return nil, nil, fail(store.ErrUnavailable, err)
	}
	ch := make(chan struct{}, 1)
	go func() { // ends with the watch, which stop ends
		defer close(ch)
		for range events {
			select {
			case ch <- struct{}{}:
			default:
			}
		}
	}()
	return ch, cancel, nil
}
