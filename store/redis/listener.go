package repriseredis

import (
	"context"
	"sync"

	"github.com/redis/go-redis/v9"
	"github.com/reprise-go/reprise/core"
)

// listener shares one subscribed connection between all watches of one server. Two goroutines run from its making to its
// close: receive hands out what the server says, and keepUp subscribes and unsubscribes, so that ending a watch does
// not wait for the network.
type listener struct {
	sub  *redis.PubSub
	work chan struct{} // buffered: there is something in dirty
	done chan struct{} // closed by close
	wg   sync.WaitGroup

	mu       sync.Mutex
	channels map[string]*channel
	dirty    map[string]struct{} // channels whose subscription may have to change
}

// channel is what a listener knows of one channel.
type channel struct {
	watchers map[chan struct{}]struct{}
	wanted   bool          // a subscription was sent and not taken back
	ready    chan struct{} // closed when the server confirmed it
}

func newListener(node *redis.Client) *listener {
	l := &listener{
		sub:      node.SSubscribe(context.Background()),
		work:     make(chan struct{}, 1),
		done:     make(chan struct{}),
		channels: make(map[string]*channel),
		dirty:    make(map[string]struct{}),
	}
	l.wg.Go(l.receive)
	l.wg.Go(l.keepUp)
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
	ready := c.ready
	l.touch(name)
	l.mu.Unlock()

	stop := func() { l.unwatch(name, changed) }
	select {
	case <-ready:
		return changed, stop, nil
	case <-l.done:
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
	c := l.channels[name]
	if c == nil {
		return
	}
	delete(c.watchers, changed)
	if len(c.watchers) == 0 {
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
func (l *listener) keepUp() {
	for {
		select {
		case <-l.done:
			return
		case <-l.work:
		}
		on, off := l.changes()
		// An error means that the connection is being replaced; the new one subscribes to what is known.
		if len(off) > 0 {
			_ = l.sub.SUnsubscribe(context.Background(), off...)
		}
		if len(on) > 0 {
			_ = l.sub.SSubscribe(context.Background(), on...)
		}
	}
}

// changes returns what to subscribe to and what not any more.
func (l *listener) changes() (on, off []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for name := range l.dirty {
		delete(l.dirty, name)
		c := l.channels[name]
		switch {
		case c == nil:
		case len(c.watchers) == 0:
			delete(l.channels, name)
			if c.wanted {
				off = append(off, name)
			}
		case !c.wanted:
			c.wanted = true
			on = append(on, name)
		}
	}
	return on, off
}

// receive hands out messages until the subscription is closed.
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
}

// confirm notes that the server listens. A confirmation that comes again is that of a new connection: what was said meanwhile is
// lost, so the watchers look again.
func (l *listener) confirm(name string) {
	l.mu.Lock()
	c := l.channels[name]
	first := false
	if c != nil {
		select {
		case <-c.ready:
		default:
			first = true
			close(c.ready)
		}
	}
	l.mu.Unlock()
	if !first {
		l.announce(name)
	}
}

// announce wakes the watchers of a channel.
func (l *listener) announce(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.channels[name]
	if c == nil {
		return
	}
	for changed := range c.watchers {
		select {
		case changed <- struct{}{}:
		default: // it has not yet looked since the last time
		}
	}
}

// close ends the subscription and waits for the goroutines.
func (l *listener) close() {
	close(l.done)
	_ = l.sub.Close() // ends receive
	l.wg.Wait()
}
