package faultstore

import (
	"context"
	"fmt"
	"time"

	"github.com/reprise-go/reprise/core/store"
)

// run counts a call, takes its fault from the script, and lets it happen to do.
func run[T any](ctx context.Context, f *Faults, op Op, do func(context.Context) (T, error)) (T, error) {
	var zero T
	fault, letGo := f.take(op)
	switch fault.kind {
	case pass:
	case failBefore:
		return zero, fault.err
	case failAfter:
		_, _ = do(ctx)
		return zero, fault.err
	case hang:
		return zero, wait(ctx, letGo, never)
	case hangAfter:
		_, _ = do(ctx)
		return zero, wait(ctx, letGo, never)
	case executeLate:
		return zero, f.runLate(ctx, letGo, fault.delay, func(ctx context.Context) { _, _ = do(ctx) })
	case delay:
		timer := time.NewTimer(fault.delay)
		defer timer.Stop()
		if err := wait(ctx, letGo, timer.C); err != nil {
			return zero, err
		}
	case hold:
		if err := wait(ctx, letGo, fault.gate); err != nil {
			return zero, err
		}
	case panics:
		panic(fault.value)
	}
	return do(ctx)
}

// runLate starts a goroutine that executes the call after d, counted by take and ended by
// Close, and waits as the caller does. The error is always ErrUnknown.
func (f *Faults) runLate(ctx context.Context, letGo <-chan struct{}, d time.Duration, do func(context.Context)) error {
	executed := make(chan struct{})
	go func() {
		defer f.lateEnded()
		defer close(executed)
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
			do(context.WithoutCancel(ctx))
		case <-f.closed:
		}
	}()

	until := (<-chan struct{})(executed)
	if ctx.Done() != nil {
		until = never
	}
	if err := wait(ctx, letGo, until); err != nil {
		return err
	}
	return fmt.Errorf("%w: faultstore: executed late", store.ErrUnknown)
}

// never is a signal that does not come.
var never <-chan struct{}

// wait returns nil when ready comes, and ErrUnknown when the call is given up before: by
// its context or by letGo.
func wait[T any](ctx context.Context, letGo <-chan struct{}, ready <-chan T) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%w: faultstore: %w", store.ErrUnknown, err)
	}
	select {
	case <-ready:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w: faultstore: %w", store.ErrUnknown, ctx.Err())
	case <-letGo:
		return fmt.Errorf("%w: faultstore: let go", store.ErrUnknown)
	}
}
