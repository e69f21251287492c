package reprise

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
)

// openWork counts the work that Close waits for: calls to Begin, attempts, and tasks in
// the background.
type openWork struct {
	count   atomic.Int64
	closed  atomic.Bool
	closing chan struct{} // closed by close
	idle    chan struct{} // closed when the count is 0 after that
	once    struct{ closing, idle sync.Once }
}

// begin counts one more piece of work, unless close was called.
func (w *openWork) begin() bool {
	w.count.Add(1) // first: work that close does not see counted must see it closed
	if w.closed.Load() {
		w.done()
		return false
	}
	return true
}

// retain adds a reference for work that is counted already, so it is allowed after close.
func (w *openWork) retain() { w.count.Add(1) }

// done takes back one begin or retain.
func (w *openWork) done() {
	if w.count.Add(-1) == 0 && w.closed.Load() {
		w.once.idle.Do(func() { close(w.idle) })
	}
}

// close refuses new work from now on. It may be called more than once.
func (w *openWork) close() {
	w.retain() // never idle before it has closed
	w.closed.Store(true)
	w.once.closing.Do(func() { close(w.closing) })
	w.done()
}

func (w *openWork) isClosing() bool {
	select {
	case <-w.closing:
		return true
	default:
		return false
	}
}

// recurring is work of an engine with a goroutine, which starts when it is first needed
// and ends in Close: the maintenance of a store, and the count of its stuck records.
type recurring struct {
	started atomic.Bool
	done    chan struct{} // closed when the goroutine has ended
}

// start starts the goroutine unless it was started before, or there is no work. It ends
// with ctx.
func (r *recurring) start(ctx context.Context, log *operatorLog, work func(context.Context)) {
	if work == nil || r.started.Load() || !r.started.CompareAndSwap(false, true) {
		return
	}
	go r.run(ctx, log, work)
}

func (r *recurring) run(ctx context.Context, log *operatorLog, work func(context.Context)) {
	defer close(r.done)
	err := apart(func() (err error) {
		defer classified(&err)
		work(ctx)
		return nil
	})
	if err != nil {
		log.logger().ErrorContext(ctx, "reprise: the maintenance of the store has ended", slog.Any("error", err))
	}
}

// wait returns when the goroutine, whose context has ended, has gone, or when ctx ends.
func (r *recurring) wait(ctx context.Context) {
	if r.started.Load() {
		await(ctx, r.done)
	}
}
