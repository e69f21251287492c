package reprise

import (
	"context"
	"log/slog"
	"sync/atomic"
)

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
	returned := false
	defer func() {
		if p := recover(); p != nil {
			log.logger().ErrorContext(ctx, "reprise: the maintenance of the store panicked and has ended", slog.Any("panic", p))
		} else if !returned {
			log.logger().ErrorContext(ctx, "reprise: the maintenance of the store ended its goroutine")
		}
	}()
	work(ctx)
	returned = true
}

// wait returns when the goroutine, whose context has ended, has gone, or when ctx ends.
func (r *recurring) wait(ctx context.Context) {
	if !r.started.Load() {
		return
	}
	select {
	case <-r.done:
	case <-ctx.Done():
	}
}
