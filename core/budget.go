package reprise

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// budget gives the deadline of a store operation as a context. Making one for each operation costs several allocations and a
// timer, so operations that begin within a twentieth of the budget share one, and its deadline is that of the earliest.
type budget struct {
	d    time.Duration
	tick atomic.Pointer[tick]
	mu   sync.Mutex // held while a new tick is made
}

// tick is a deadline that is handed out until a given instant.
type tick struct {
	ctx    context.Context
	cancel context.CancelFunc
	until  instant
}

// context returns a context that ends 0.95 d to d from at, which is now.
func (b *budget) context(at instant) context.Context {
	if t := b.tick.Load(); t != nil && !at.reached(t.until) {
		return t.ctx
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if t := b.tick.Load(); t != nil && !at.reached(t.until) {
		return t.ctx
	}
	ctx, cancel := context.WithTimeout(context.Background(), b.d)
	b.tick.Store(&tick{ctx: ctx, cancel: cancel, until: at.add(b.d / 20)})
	return ctx
}

// stop ends the deadline that is being handed out; those before it end by themselves.
func (b *budget) stop() {
	if t := b.tick.Load(); t != nil {
		t.cancel()
	}
}

// callContext is the context of one operation: the deadline of a budget, the values of a request.
type callContext struct {
	context.Context                 // the budget's
	values          context.Context // the request's, for traces and the like
}

// Value asks the deadline first, so that what it answers about its own cancellation is its own.
func (c *callContext) Value(key any) any {
	if v := c.Context.Value(key); v != nil {
		return v
	}
	return c.values.Value(key)
}
