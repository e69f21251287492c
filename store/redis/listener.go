package repriseredis

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/redis/go-redis/v9"
	reprise "github.com/reprise-go/reprise/core"
)

// listener shares one subscribed connection between all watches of one server. Two goroutines run from its making to its
// end: receive hands out what the server says, and keepUp subscribes and unsubscribes, so that ending a watch does
// not wait for the network. It ends by close, or by itself when its client is closed.
type listener struct {
	sub   *redis.PubSub
	work  chan struct{}   // buffered: there is something in dirty
	ended <-chan struct{} // closed at its end
	end   context.CancelFunc
	wg    sync.WaitGroup

	mu       sync.Mutex
	channels map[string]*channel
	dirty    map[string]struct{} // channels whose subscription may have to change
}

// channel is what a listener knows of one channel.
type channel struct {
	watchers  map[chan struct{}]struct{}
	sent      bool          // a subscription was sent
	confirmed bool          // the server listens
	ready     chan struct{} // closed with confirmed
}

func newListener(node *redis.Client) *listener {
	ctx, end := context.WithCancel(context.Background())
	l := &listener{
		sub:      node.SSubscribe(ctx),
		work:     make(chan struct{}, 1),
		ended:    ctx.Done(),
		end:      end,
		channels: make(map[string]*channel),
		dirty:    make(map[string]struct{}),
	}
	l.wg.Go(l.receive)
	l.wg.Go(func() { l.keepUp(ctx) })
	return l
}

// watch starts to listen to a channel, and returns when the server confirmed that it does.
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
	select {
	case <-c.ready:
		return changed, stop, nil
	case <-l.ended:
		stop()
		return nil, nil, reprise.ErrClosed
	case <-ctx.Done():
		stop()
		return nil, nil, fail(reprise.ErrUnavailable, ctx.Err())
	}
}

func (l *listener) unwatch(name string, changed chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c := l.channels[name]; c != nil {
		delete(c.watchers, changed)
		l.touch(name)
	}
}

// touch tells keepUp to look at a channel. The caller holds the lock.
func (l *listener) touch(name string) {
	l.dirty[name] = struct{}{}
	select {
	case l.work <- struct{}{}:
	default:
	}
}

// keepUp makes the subscriptions follow the watches.
func (l *listener) keepUp(ctx context.Context) {
	for {
		select {
		case <-l.ended:
			return
		case <-l.work:
		}
		on, off := l.changes()
		// An error means that the connection is being replaced; the new one subscribes to what is wanted then.
		if len(off) > 0 {
			_ = l.sub.SUnsubscribe(ctx, off...)
		}
		if len(on) > 0 {
			_ = l.sub.SSubscribe(ctx, on...)
		}
	}
}

// changes returns what to subscribe to and what not any more. A subscription is taken back only once it was confirmed: a
// confirmation that is still on its way would be taken for that of the next one.
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

// receive hands out what the server says until the subscription is closed.
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
	_ = l.sub.Close() // when it was the client that was closed
	l.mu.Lock()
	names := slices.Collect(maps.Keys(l.channels))
	l.mu.Unlock()
	for _, name := range names {
		l.announce(name) // nothing more will be heard
	}
}

// confirm notes that the server listens. A confirmation that comes again is that of a new connection: what was said meanwhile is
// lost, so the watchers look again.
func (l *listener) confirm(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.channels[name]
	switch {
	case c == nil:
	case c.confirmed:
		c.announce()
	default:
		c.confirmed = true
		close(c.ready)
		l.touch(name) // its watchers may have left
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
		default: // it has not yet looked since the last time
		}
	}
}

// close ends the subscription, tells the watchers, and waits for the goroutines.
func (l *listener) close() {
	l.end()
	_ = l.sub.Close() // ends receive
	l.wg.Wait()
}

// isOver says that the listener has ended.
func (l *listener) isOver() bool {
	select {
	case <-l.ended:
		return true
	default:
		return false
	}
}
