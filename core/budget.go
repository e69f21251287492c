package reprise

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

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
