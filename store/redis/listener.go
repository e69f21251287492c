package repriseredis

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/reprise-go/reprise/core/store"
)

const (
	// confirmTimeout is how long a watch waits for the server to confirm its subscription. A
	// watch only saves a waiting request some polls, so it must not take long.
	confirmTimeout = 100 * time.Millisecond

	// silence is for how long watches fail at once after a subscription was not confirmed in
	// time. Then a new listener replaces the old one.
	silence = 10 * time.Second
)

// errSilent is the failure of a watch on a server that confirms no subscription.
var errSilent = fail(store.ErrUnavailable, errors.New("the server confirms no subscription: it may lack SSUBSCRIBE, or its user the permission for the channel"))

// listeners has one listener for each server that is watched.
type listeners struct {
	timeout  time.Duration // see confirmTimeout
	cluster  bool          // the servers are nodes of a cluster
	mu       sync.Mutex    // also of the listeners
	closed   bool
	byServer map[*redis.Client]*listener
	running  sync.WaitGroup
}

// listener wakes the requests that wait for a record to change, by sharded pub/sub. All
// watches of one server share one subscribed connection. Its goroutine subscribes and
// unsubscribes, so that ending a watch does not wait for the network. It ends by close,
// or when its client is closed.
type listener struct {
	sub *redis.PubSub
	ctx context.Context // ends with the listener
	end context.CancelFunc

	mu        *sync.Mutex
	watchers  map[string]map[chan struct{}]bool // by channel
	confirmed map[string]bool                   // the channels that the server confirmed
	due       map[string]bool                   // channels to subscribe to (true) or to unsubscribe from
	work      chan struct{}                     // buffered; has a value while any is due
	silentAt  time.Time                         // since when a confirmation is missing; zero: none is
}

// watch listens to a channel of a server until stop is called: see [Store.Watch].
func (s *listeners) watch(ctx context.Context, node *redis.Client, name string) (<-chan struct{}, func(), error) {
	s.mu.Lock()
	l, err := s.listener(node, name) //nolint:contextcheck // a listener outlives the watch that made it
	if err != nil {
		s.mu.Unlock()
		return nil, nil, err
	}
	if l.watchers[name] == nil {
		l.watchers[name] = make(map[chan struct{}]bool, 1)
		l.queue(name, true)
	}
	changed := make(chan struct{}, 1)
	l.watchers[name][changed] = true
	if l.confirmed[name] {
		changed <- struct{}{}
	} else {
		l.silentAt = cmp.Or(l.silentAt, time.Now()) // also for a caller that leaves before that is too long
	}
	s.mu.Unlock()

	stop := func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(l.watchers[name], changed)
		l.drop(name)
	}
	if err := l.await(ctx, changed, s.timeout); err != nil {
		stop()
		return nil, nil, err
	}
	return changed, stop, nil
}

// listener returns the listener of a server, a new one where the old one has ended or was
// silent for too long. In a cluster a new one also subscribes to name as a plain channel:
// see handle. The caller holds the lock.
func (s *listeners) listener(node *redis.Client, name string) (*listener, error) {
	if s.closed {
		return nil, store.ErrClosed
	}
	if l := s.byServer[node]; l != nil && l.ctx.Err() == nil {
		switch silent := time.Since(l.silentAt); {
		case l.silentAt.IsZero(), silent < s.timeout:
			return l, nil
		case silent < silence:
			return nil, errSilent
		}
		s.running.Go(l.close) // which may wait for the network
	}
	ctx, end := context.WithCancel(context.Background())
	l := &listener{
		sub: node.SSubscribe(ctx), ctx: ctx, end: end, mu: &s.mu,
		watchers: make(map[string]map[chan struct{}]bool), confirmed: make(map[string]bool),
		due: make(map[string]bool), work: make(chan struct{}, 1),
	}
	s.byServer[node] = l
	s.running.Go(func() {
		if s.cluster {
			_ = l.sub.Subscribe(ctx, name)
		}
		l.run()
	})
	return l, nil
}

// close wakes all watchers, and waits until the goroutines of the listeners have ended.
func (s *listeners) close() {
	s.mu.Lock()
	s.closed = true // byServer does not change any more
	s.mu.Unlock()
	for _, l := range s.byServer {
		l.close()
	}
	s.running.Wait()
}

// close ends the subscription, after which run wakes the watchers.
func (l *listener) close() {
	l.end()
	_ = l.sub.Close()
}

// await waits until the server has confirmed the channel of a watcher, which wakes it.
func (l *listener) await(ctx context.Context, changed <-chan struct{}, timeout time.Duration) error {
	select {
	case <-changed:
		if l.ctx.Err() == nil {
			return nil
		}
		return store.ErrClosed
	case <-ctx.Done():
		return fail(store.ErrUnavailable, ctx.Err())
	case <-time.After(timeout):
		return errSilent
	}
}

// queue makes run subscribe to a channel, or unsubscribe from it: the last call for a
// channel counts. The caller holds the lock.
func (l *listener) queue(name string, on bool) {
	l.due[name] = on
	select {
	case l.work <- struct{}{}:
	default:
	}
}

// drop unsubscribes from a channel without watchers. It does so only after the server
// confirmed it: a confirmation that is still on its way would look like that of the next
// subscription. The few that are never confirmed end with the listener: see [silence].
// The caller holds the lock.
func (l *listener) drop(name string) {
	if len(l.watchers[name]) == 0 && l.confirmed[name] {
		delete(l.watchers, name)
		delete(l.confirmed, name)
		l.queue(name, false)
	}
}

// run makes the subscriptions follow the watches, and passes on what the server
// publishes, until the subscription is closed.
func (l *listener) run() {
	events := l.sub.ChannelWithSubscriptions(redis.WithChannelSize(0)) // a pause of follow holds the client up too
	for open := true; open; {
		var event any
		select {
		case event, open = <-events:
			l.handle(event)
		case <-l.work:
			l.follow()
		}
	}
	l.close() // in case the client was closed, and not the listener
	l.mu.Lock()
	defer l.mu.Unlock()
	for name := range l.watchers {
		l.announce(name) // so that watchers do not wait for a listener that has ended
	}
}

// follow sends what is due, each channel in a command of its own: a node of a cluster
// refuses one for channels of several slots. An error means that the connection is being
// replaced. The new one subscribes to all channels that are wanted by then. A server that
// does not confirm is asked after a pause: it may redirect to itself, for which go-redis
// makes another connection at once.
func (l *listener) follow() {
	l.mu.Lock()
	due, silent := l.due, !l.silentAt.IsZero() && time.Since(l.silentAt) > confirmTimeout
	l.due = make(map[string]bool)
	l.mu.Unlock()
	if silent {
		pause(l.ctx, repeats-1)
	}
	for name, on := range due {
		if on {
			_ = l.sub.SSubscribe(l.ctx, name)
		} else {
			_ = l.sub.SUnsubscribe(l.ctx, name)
		}
	}
}

// handle wakes the watchers of a channel for a message or a confirmation. The first
// confirmation ends the wait of await. Another one comes from a new connection, and
// messages that were published in between are lost.
//
// A node of a cluster shows a new connection by confirming the plain channel. The client
// subscribes to the others again in one command, which the node refuses where their slots
// differ: so all of them are due.
func (l *listener) handle(event any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch event := event.(type) {
	case *redis.Message:
		l.announce(event.Channel)
	case *redis.Subscription:
		switch name := event.Channel; {
		case event.Kind == "subscribe":
			clear(l.confirmed)
			for watched := range l.watchers {
				l.queue(watched, true)
				l.silentAt = cmp.Or(l.silentAt, time.Now())
			}
		case event.Kind == "ssubscribe" && l.watchers[name] != nil:
			l.silentAt, l.confirmed[name] = time.Time{}, true
			l.announce(name)
			l.drop(name) // its watchers may be gone
		}
	}
}

// announce wakes the watchers of a channel. The caller holds the lock.
func (l *listener) announce(name string) {
	for changed := range l.watchers[name] {
		select {
		case changed <- struct{}{}:
		default: // the watcher has not yet received the last announcement
		}
	}
}
