package repriseredis

import (
	"context"
	"errors"
	"maps"
	"slices"
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
	wg   sync.WaitGroup

	mu       sync.Mutex
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

func newListener(node *redis.Client) *listener {
	ctx, end := context.WithCancel(context.Background())
	l := &listener{
		sub:      node.SSubscribe(ctx),
		work:     make(chan struct{}, 1),
		ctx:      ctx,
		end:      end,
		channels: make(map[string]*channel),
		dirty:    make(map[string]struct{}),
	}
	l.wg.Go(l.receive)
	l.wg.Go(l.keepUp)
	return l
}

// watch starts to listen to a channel, and returns when the server has confirmed the
// subscription. The error is [store.ErrUnavailable] when that takes too long.
func (l *listener) watch(ctx context.Context, name string) (<-chan struct{}, func(), error) {
	changed := make(chan struct{}, 1)
	l.mu.Lock()
	c := l.channels[name]
	if c == nil {
		c = &channel{watchers: make(map[chan struct{}]struct{}, 1), ready: make(chan struct{})}
		l.channels[name] = c
	}
	c.watchers[changed] = struct{}{}
	l.touch(name)
	l.mu.Unlock()

	stop := func() { l.unwatch(name, changed) }
	timer := time.NewTimer(confirmTimeout)
	defer timer.Stop()
	var err error
	select {
	case <-c.ready:
		return changed, stop, nil
	case <-l.ctx.Done():
		err = store.ErrClosed
	case <-ctx.Done():
		err = fail(store.ErrUnavailable, ctx.Err())
	case <-timer.C:
		l.missConfirmation()
		err = fail(store.ErrUnavailable, errSilent)
	}
	stop()
	return nil, nil, err
}

// missConfirmation notes that the server did not confirm a subscription in time.
func (l *listener) missConfirmation() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.silentAt.IsZero() {
		l.silentAt = time.Now()
	}
}

// silentFor returns for how long a confirmation has been missing, and zero when none is.
func (l *listener) silentFor() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.silentAt.IsZero() {
		return 0
	}
	return time.Since(l.silentAt)
}

func (l *listener) unwatch(name string, changed chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c := l.channels[name]; c != nil {
		delete(c.watchers, changed)
		l.touch(name)
	}
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

// receive passes on the messages that the server publishes until the subscription is
// closed.
func (l *listener) receive() {
	for event := range l.sub.ChannelWithSubscriptions() {
		switch event := event.(type) {
		case *redis.Subscription:
			if event.Kind == "ssubscribe" {
				l.confirm(event.Channel)
			}
		case *redis.Message:
			l.announce(event.Channel)
		}
	}
	l.end()
	_ = l.sub.Close() // in case the client was closed, and not the listener
	l.mu.Lock()
	names := slices.Collect(maps.Keys(l.channels))
	l.mu.Unlock()
	for _, name := range names {
		l.announce(name) // so that watchers do not wait for a listener that has ended
	}
}

// confirm notes that the server confirmed a subscription. A second confirmation comes
// from a new connection: messages that were published in between are lost, so it wakes
// the watchers.
func (l *listener) confirm(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
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

// announce wakes the watchers of a channel.
func (l *listener) announce(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c := l.channels[name]; c != nil {
		c.announce()
	}
}

func (c *channel) announce() {
	for changed := range c.watchers {
		select {
		case changed <- struct{}{}:
		default: // the watcher has not yet received the last announcement
		}
	}
}

// close ends the subscription, wakes the watchers, and waits for the goroutines.
func (l *listener) close() {
	l.end()
	_ = l.sub.Close() // ends receive
	l.wg.Wait()
}

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
	if l, ok := s.byServer[node]; ok && l.ctx.Err() == nil {
		switch silent := l.silentFor(); {
		case silent == 0:
			return l, nil
		case silent < silence:
			return nil, fail(store.ErrUnavailable, errSilent)
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
