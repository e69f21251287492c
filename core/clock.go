package reprise

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/reprise-go/reprise/core/internal/chance"
)

// instant is a reading of both local clocks. The wall clock may be set, and the monotonic
// clock stops while the machine sleeps, so a deadline has passed as soon as either of
// them says so. The store's clock decides who owns a record; the local clocks only decide
// how long to rely on a lease.
type instant struct {
	mono time.Duration // since the process started
	wall int64         // Unix time in nanoseconds
}

var processStart = time.Now()

func now() instant {
	t := time.Now()
	return instant{mono: t.Sub(processStart), wall: t.UnixNano()}
}

// sinceStart reads the monotonic clock alone, which takes half the time.
func sinceStart() time.Duration { return time.Since(processStart) }

// never is later than every reading.
var never = instant{mono: 1<<63 - 1, wall: 1<<63 - 1}

func (i instant) add(d time.Duration) instant {
	if i == never {
		return never
	}
	return instant{mono: i.mono + d, wall: i.wall + int64(d)}
}

// until returns how long it is from i to then, by the clock that says less.
func (i instant) until(then instant) time.Duration {
	if then == never {
		return never.mono
	}
	return min(then.mono-i.mono, time.Duration(then.wall-i.wall))
}

// skew returns how far the wall clock is ahead of the monotonic one. It grows when the
// machine sleeps or its clock is set ahead.
func (i instant) skew() time.Duration { return time.Duration(i.wall) - i.mono }

// align returns an instant that both clocks reach when the first of them would have
// reached then.
func (i instant) align(then instant) instant {
	if then == never {
		return never
	}
	return i.add(i.until(then))
}

// reached reports whether either clock is at then or past it.
func (i instant) reached(then instant) bool { return i.until(then) <= 0 }

// earlier returns the earlier of two instants by the monotonic clock, which is right if
// both were read with one skew.
func earlier(a, b instant) instant {
	if b.mono < a.mono {
		return b
	}
	return a
}

// Every duration that is derived from a lease, here for the default of 30 s:
//
//	from when a lease was asked for
//	    until it is renewed               a third, ± a tenth of that    9 to 11 s
//	    until its local deadline          all but max(a tenth, 250 ms)  27 s
//	until a failed renewal is repeated    a twentieth                   1.5 s
//	for one call to Store.Renew           a sixth                       5 s
//	from MaxRun until it is unknown       all of it                     30 s
//	between two looks of the renewer      a quarter, at most 1 s        1 s

// renewalDue draws when to renew a lease that was asked for at sent. The draw keeps
// leases that were taken together from being renewed together for ever. The instants lie
// on a grid of a sixtieth of the lease, so that however many attempts run, those that are
// due at about the same time share a batch.
func renewalDue(sent instant, lease time.Duration) instant {
	third := max(lease, 0) / 3
	due := sent.add(third - third/20 + chance.Below(third*3/20+1))
	grid := third/20 + 1
	return due.add(-((due.mono%grid + grid) % grid)) // down to the grid, also where the clock reads less than zero
}

// renewalRetry is the pause after a renewal that was not answered.
func renewalRetry(lease time.Duration) time.Duration { return lease / 20 }

// renewalTimeout bounds one call to [store.Store].Renew.
func renewalTimeout(lease time.Duration) time.Duration { return lease / 6 }

// localDeadline is how long after it was asked for a lease is relied on. The margin
// before it runs out by the store's clock is for the drift of the clocks and for the
// handler to stop.
func localDeadline(lease time.Duration) time.Duration {
	return lease - max(lease/10, 250*time.Millisecond)
}

// renewerSleep is how long the renewer sleeps at most. No lease is due for renewal before
// a third of it, so looking every quarter means that a steady stream of short requests
// never has to wake the goroutine. One second bounds how late a deadline is noticed after
// the machine was suspended, when timers stood still.
func renewerSleep(lease time.Duration) time.Duration { return min(lease/4, time.Second) }

// runUntil returns until when a handler that starts now may run.
func (c *Config) runUntil() instant {
	if c.MaxRun == unboundedRun {
		return never
	}
	return now().add(c.MaxRun)
}

// arrival returns when a claim that is on its way now has arrived at the store.
func (c *Config) arrival() instant { return now().add(c.ClaimTimeout) }

// jitter returns d ± a quarter.
func jitter(d time.Duration) time.Duration {
	return d - d/4 + chance.Below(d/2+1)
}

const (
	firstPause   = 10 * time.Millisecond // before the second try; each further one is four times as long
	longestPause = time.Second           // between tries in the background
)

// pause sleeps about d before the next try, and reports whether there is time for one.
func pause(ctx context.Context, d time.Duration) bool { return sleep(ctx, jitter(d)) }

// sleep reports false when ctx ends before d has passed.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// await returns when done is closed, or when ctx ends.
func await(ctx context.Context, done <-chan struct{}) {
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// signal lets the goroutine that reads from wake, which has room for one value, look now.
func signal(wake chan<- struct{}) {
	select {
	case wake <- struct{}{}:
	default:
	}
}

// schedule is a heap of things by when they are due, for package heap.
type schedule[T scheduled] []T

type scheduled interface{ place() *turn }

// turn is the place of one thing in its schedule.
type turn struct {
	due   instant
	index int // -1 outside of it
}

func (h schedule[T]) Len() int           { return len(h) }
func (h schedule[T]) Less(i, j int) bool { return h[i].place().due.mono < h[j].place().due.mono }
func (h schedule[T]) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].place().index, h[j].place().index = i, j
}

// Push implements [heap.Interface].
func (h *schedule[T]) Push(x any) {
	t := x.(T)
	t.place().index = len(*h)
	*h = append(*h, t)
}

// Pop implements [heap.Interface].
func (h *schedule[T]) Pop() any {
	last := len(*h) - 1
	t := (*h)[last]
	clear((*h)[last:])
	*h = (*h)[:last]
	t.place().index = -1
	return t
}

// budget bounds store operations by contexts. A context for each operation costs several
// allocations and a timer, so operations that begin within a twentieth of the budget
// share one, whose deadline is that of the first.
type budget struct {
	d      time.Duration
	shared atomic.Pointer[sharedContext]
	mu     sync.Mutex // held while a new context is made
}

// sharedContext is a context that is handed out until a given instant.
type sharedContext struct {
	ctx    context.Context
	cancel context.CancelFunc
	until  time.Duration // by the monotonic clock, as the context's own timer
}

// context returns a context that ends 0.95 d to d from at, which is now.
func (b *budget) context(at time.Duration) context.Context {
	if s := b.shared.Load(); s != nil && at < s.until {
		return s.ctx
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if s := b.shared.Load(); s != nil && at < s.until {
		return s.ctx
	}
	ctx, cancel := context.WithTimeout(context.Background(), b.d)
	b.shared.Store(&sharedContext{ctx: ctx, cancel: cancel, until: at + b.d/20})
	return ctx
}

// stop ends the context that is handed out at the moment; those before it reach their
// deadlines.
func (b *budget) stop() {
	if s := b.shared.Load(); s != nil {
		s.cancel()
	}
}

// callContext is the context of one store operation: the deadline of a budget, the values
// of a request.
type callContext struct {
	context.Context                 // the budget's
	values          context.Context // the request's, for its trace
}

// Value asks the deadline's context first, so that package context finds the cancellation
// of that one.
func (c *callContext) Value(key any) any {
	if v := c.Context.Value(key); v != nil {
		return v
	}
	return c.values.Value(key)
}
