package repriseredis

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/reprise-go/reprise/core/store"
)

// Limits of a [listener].
const (
	// confirmTimeout is how long a watch waits for the server to confirm its subscription. A
	// watch only saves a waiting request some polls, so it must not take long.
	confirmTimeout = 100 * time.Millisecond

	// silence is for how long watches fail at once after a subscription was not confirmed in
	// time. Then a new listener replaces the old one.
	silence = 10 * time.Second
)

// errSilent is the failure of a watch on a server that confirms no subscription.
var errSilent = errors.New("the server confirms no subscription: it may lack SSUBSCRIBE, or its user the permission for the channel")

// listeners has one listener for each server that is watched. The zero value is empty.
type listeners struct {
	mu       sync.Mutex // also of the listeners
	closed   bool
	byServer map[*redis.Client]*listener
	running  sync.WaitGroup // the goroutines of all listeners
}

// listener wakes the requests that wait for a record to change, by sharded pub/sub. All
// watches of one server share one subscribed connection. Two goroutines run from its
// creation to its end: receive passes on the messages that the server publishes, and
// keepUp subscribes and unsubscribes, so that ending a watch does not wait for the
// network. It ends by close, or when its client is closed.
type listener struct {
	sub  *redis.PubSub
	work chan struct{}   // buffered; has a value while dirty is not empty
	ctx  context.Context // ends with the listener
	end  context.CancelFunc

	mu       *sync.Mutex
	channels map[string]*channel
	dirty    map[string]struct{} // channels whose subscription may have to change
	silentAt time.Time           // since when a confirmation is missing; zero: none is
}

// channel is the state of one channel of a listener.
type channel struct {
	watchers  map[chan struct{}]struct{}
	sent      bool          // a subscription was sent
	confirmed bool          // the server confirmed it
	ready     chan struct{} // closed when confirmed becomes true
}

// watch listens to a channel of a server until stop is called. It returns when the server
// has confirmed the subscription. The error is [store.ErrUnavailable] when that takes
// longer than 100 ms; for the next ten seconds, watches of that server then fail at once.
// After close, it is [store.ErrClosed].
func (s *listeners) watch(ctx context.Context, node *redis.Client, name string) (<-chan struct{}, func(), error) {
	s.mu.Lock()
	l, err := s.listener(node) //nolint:contextcheck // a listener outlives the watch that made it
	if err != nil {
		s.mu.Unlock()
		return nil, nil, err
	}
	changed := make(chan struct{}, 1)
	c := l.channels[name]
	if c == nil {
		c = &channel{watchers: make(map[chan struct{}]struct{}, 1), ready: make(chan struct{})}
		l.channels[name] = c
	}
	c.watchers[changed] = struct{}{}
	l.touch(name)
	s.mu.Unlock()

	stop := func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(c.watchers, changed)
		l.touch(name)
	}
	if err := l.await(ctx, c); err != nil {
		stop()
		return nil, nil, err
	}
	return changed, stop, nil
}

// listener returns the listener of a server, a new one where the old one has ended or was
// silent for too long. The caller holds the lock.
func (s *listeners) listener(node *redis.Client) (*listener, error) {
	if s.closed {
		return nil, store.ErrClosed
	}
	if l, ok := s.byServer[node]; ok && l.ctx.Err() == nil {
		switch {
		case l.silentAt.IsZero():
			return l, nil
		case time.Since(l.silentAt) < silence:
			return nil, fail(store.ErrUnavailable, errSilent)
		}
		s.running.Go(l.close) // which may wait for the network
	}
	ctx, end := context.WithCancel(context.Background())
	l := &listener{
		sub: node.SSubscribe(ctx), work: make(chan struct{}, 1), ctx: ctx, end: end,
		mu: &s.mu, channels: make(map[string]*channel), dirty: make(map[string]struct{}),
	}
	s.running.Go(l.receive)
	s.running.Go(l.keepUp)
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
	s.running.Wait()
}

// close ends the subscription, after which receive wakes the watchers.
func (l *listener) close() {
	l.end()
	_ = l.sub.Close()
}

// await waits for the confirmation of a channel.
func (l *listener) await(ctx context.Context, c *channel) error {
	timer := time.NewTimer(confirmTimeout)
	defer timer.Stop()
	select {
	case <-c.ready:
		return nil
	case <-l.ctx.Done():
		return store.ErrClosed
	case <-ctx.Done():
		return fail(store.ErrUnavailable, ctx.Err())
	case <-timer.C:
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.silentAt.IsZero() {
		l.silentAt = time.Now()
	}
	return fail(store.ErrUnavailable, errSilent)
}

// touch makes keepUp look at a channel. The caller holds the lock.
func (l *listener) touch(name string) {
	l.dirty[name] = struct{}{}
	select {
	case l.work <- struct{}{}:
	default:
	}
}

// keepUp makes the subscriptions follow the watches.
func (l *listener) keepUp() {
	for {
		select {
		case <-l.ctx.Done():
			return
		case <-l.work:
		}
		on, off := l.changes()
		// An error means that the connection is being replaced. The new one subscribes to all
		// channels that are wanted by then.
		if len(off) > 0 {
			_ = l.sub.SUnsubscribe(l.ctx, off...)
		}
		if len(on) > 0 {
			_ = l.sub.SSubscribe(l.ctx, on...)
		}
	}
}

// changes returns the channels to subscribe to and to unsubscribe from. A channel is
// unsubscribed only after its confirmation: one that is still on its way would look like
// that of the next subscription. The few that are never confirmed end with the listener:
// see [silence].
func (l *listener) changes() (on, off []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for name := range l.dirty {
		c := l.channels[name]
		switch {
		case c == nil:
		case len(c.watchers) > 0 && !c.sent:
			c.sent = true
			on = append(on, name)
		case len(c.watchers) == 0 && c.sent == c.confirmed:
			delete(l.channels, name)
			if c.sent {
				off = append(off, name)
			}
		}
	}
	clear(l.dirty)
	return on, off
}

// receive passes on what the server publishes until the subscription is closed.
func (l *listener) receive() {
	for event := range l.sub.ChannelWithSubscriptions() {
		l.mu.Lock()
		switch event := event.(type) {
		case *redis.Subscription:
			if event.Kind == "ssubscribe" {
				l.confirm(event.Channel)
			}
		case *redis.Message:
			if c := l.channels[event.Channel]; c != nil {
				c.announce()
			}
		}
		l.mu.Unlock()
	}
	l.close() // in case the client was closed, and not the listener
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.channels {
		c.announce() // so that watchers do not wait for a listener that has ended
	}
}

// confirm notes that the server confirmed a subscription. A second confirmation comes
// from a new connection: messages that were published in between are lost, so it wakes
// the watchers. The caller holds the lock.
func (l *listener) confirm(name string) {
	l.silentAt = time.Time{}
	c := l.channels[name]
	switch {
	case c == nil:
	case c.confirmed:
		c.announce()
	default:
		c.confirmed = true
		close(c.ready)
		l.touch(name) // its watchers may be gone
	}
}

// announce wakes the watchers.
func (c *channel) announce() {
	for changed := range c.watchers {
		select {
		case changed <- struct{}{}:
		default: // the watcher has not yet received the last announcement
		}
	}
}
