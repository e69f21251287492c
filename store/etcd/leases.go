package repriseetcd

import (
	"context"
	"math/bits"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// maxShared bounds how many leases a process remembers in order to share them.
const maxShared = 4096

// maxUses bounds how many writes use a lease. Each attaches one key or two, and the
// server deletes all keys of a lease in one step, during which it answers no other
// request: tens of milliseconds for 5,000 keys, and a second for 100,000.
const maxUses = 2500

// leases obtains leases of etcd, and shares each among the keys that end at about the
// same time, so that a million records need some thousand leases. Leases are never kept
// alive; the server deletes their keys when they end. They never end early: the server
// rounds up to seconds, and a new leader of the cluster starts them again.
type leases struct {
	client *clientv3.Client

	mu      sync.Mutex
	current map[sharers]*lease
	ends    map[clientv3.LeaseID]end // of the leases that this process granted, until then
	sweep   int                      // how many ends make it look for those that are past
}

// lease is a lease of etcd.
type lease struct {
	granted chan struct{} // closed once the rest is set
	err     error
	id      clientv3.LeaseID
	until   end // the lease does not end before
	uses    int // guarded by the mutex of leases
}

// end is an instant on two clocks: the monotonic clock stops while the machine sleeps,
// and the wall clock may be set back. The instant has come once either clock says so.
type end struct{ monotonic, wall time.Time }

func endAfter(start time.Time, d time.Duration) end {
	at := start.Add(d)
	return end{monotonic: at, wall: at.Round(0)}
}

// left returns the time until the instant.
func (e end) left() time.Duration { return min(time.Until(e.monotonic), time.Until(e.wall)) }

// agreed reports whether the clocks agree: neither was set, and the machine did not
// sleep.
func (e end) agreed() bool {
	return (time.Until(e.monotonic) - time.Until(e.wall)).Abs() < time.Second
}

// sharing is by how much a lease may outlast a period, so that others can share it: about
// a sixtieth, a minute at most. Each is a multiple of the next, so that periods of
// different lengths end in the same seconds.
func sharing(period time.Duration) time.Duration {
	for _, d := range []time.Duration{time.Minute, 30 * time.Second, 10 * time.Second, 5 * time.Second} {
		if period >= 60*d {
			return d
		}
	}
	return time.Second
}

// sharers are the periods that share a lease: those that end at about the same time, and
// whose lengths in seconds have equally many binary digits. A new leader of the cluster
// starts a lease again with the length that it had at first, so one that was granted for
// a much longer period would then outlast a short one by far.
type sharers struct {
	second int64 // until which the lease has to last at least
	digits int
}

// sharersOf returns those that share the lease of a period: its end is rounded up.
func sharersOf(now time.Time, period time.Duration) sharers {
	to := int64(sharing(period) / time.Second)
	return sharers{
		second: (now.Add(period).Unix()/to + 1) * to,
		digits: bits.Len64(uint64(period / time.Second)), //nolint:gosec // periods are positive
	}
}

// spare returns how much longer than asked the lease lasts.
func (l *lease) spare(asked time.Duration) time.Duration {
	return max(l.until.left()-asked, 0).Truncate(time.Millisecond)
}

// lasting returns a lease that lasts for the period at least, from the call on.
func (l *leases) lasting(ctx context.Context, period time.Duration) (*lease, error) {
	for {
		now := time.Now()
		of := sharersOf(now, period)
		current, mine := l.take(period, of)
		if mine {
			l.grant(ctx, current, now, of.second)
			if current.err != nil {
				l.drop(current)
			}
		}
		select {
		case <-current.granted:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		switch {
		case current.err == nil && (mine || current.until.left() >= period):
			return current, nil
		case current.err != nil && mine:
			return nil, current.err
		} // the context of another call ended, or a clock was set: try again
	}
}

// take returns the lease for a period, and whether the caller has to grant it. It does
// not share a lease whose clocks disagree.
func (l *leases) take(period time.Duration, of sharers) (current *lease, grant bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if current = l.current[of]; current != nil && (!current.done() || current.until.left() >= period && current.until.agreed() && current.uses < maxUses) {
		current.uses++
		return current, false
	}
	if len(l.current) >= maxShared {
		clear(l.current)
	}
	current = &lease{granted: make(chan struct{}), uses: 1}
	l.current[of] = current
	return current, true
}

func (l *lease) done() bool {
	select {
	case <-l.granted:
		return true
	default:
		return false
	}
}

// grant asks the server for a lease until a second, or a little longer.
func (l *leases) grant(ctx context.Context, current *lease, now time.Time, second int64) {
	defer close(current.granted)
	granted, err := l.client.Grant(clientv3.WithRequireLeader(ctx), second-now.Unix())
	if err != nil {
		current.err = err
		return
	}
	current.id, current.until = granted.ID, endAfter(now, time.Duration(granted.TTL)*time.Second)
	l.remember(current)
}

// drop forgets a lease that the server does not know any more.
func (l *leases) drop(gone *lease) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for of, current := range l.current {
		if current == gone {
			delete(l.current, of)
		}
	}
}

// left returns how long a lease is sure to last. For leases of other processes, it asks
// the server, which answers in seconds. It also asks if the clocks of this process
// disagree, because a clock that was set must not shorten the life of a record.
func (l *leases) left(ctx context.Context, id clientv3.LeaseID) (time.Duration, error) {
	l.mu.Lock()
	until, known := l.ends[id]
	l.mu.Unlock()
	if known && until.agreed() {
		return until.left(), nil
	}
	r, err := l.client.TimeToLive(ctx, id)
	if err != nil {
		return 0, classify(err)
	}
	return time.Duration(r.TTL) * time.Second, nil
}

// remember keeps the end of a lease, and forgets those that are past.
func (l *leases) remember(granted *lease) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.ends) >= l.sweep {
		for id, until := range l.ends {
			if until.left() <= 0 {
				delete(l.ends, id)
			}
		}
		l.sweep = 2*len(l.ends) + maxShared
	}
	l.ends[granted.id] = granted.until
}
