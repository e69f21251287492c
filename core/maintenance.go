package reprise

import (
	"context"
	"log/slog"
	"sync/atomic"

	"github.com/reprise-go/reprise/core/store"
)

// maintenance gives a store that is a [store.Maintainer] a goroutine, which starts with
// the first operation of the engine and ends in Close.
type maintenance struct {
	started atomic.Bool
	done    chan struct{} // closed when the goroutine has ended
}

// start starts the goroutine unless it was started before. It ends with ctx.
func (m *maintenance) start(ctx context.Context, maintainer store.Maintainer) {
	if maintainer == nil || m.started.Load() || !m.started.CompareAndSwap(false, true) {
		return
	}
	go m.run(ctx, maintainer)
}

func (m *maintenance) run(ctx context.Context, maintainer store.Maintainer) {
	defer close(m.done)
	defer func() {
		if p := recover(); p != nil {
			slog.ErrorContext(ctx, "reprise: the maintenance of the store panicked and has ended", slog.Any("panic", p))
		}
	}()
	maintainer.Maintain(ctx)
}

// wait returns when the goroutine, whose context has ended, has gone, or when ctx ends.
func (m *maintenance) wait(ctx context.Context) {
	if !m.started.Load() {
		return
	}
	select {
	case <-m.done:
	case <-ctx.Done():
	}
}
