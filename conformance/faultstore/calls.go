package faultstore

import (
	"context"
	"fmt"
)

// Count returns how often op was called so far, including the calls that were not
// executed.
func (f *Faults) Count(op Op) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.counts[op]
}

// Await waits until op was called n times in total. It fails if ctx ends before.
func (f *Faults) Await(ctx context.Context, op Op, n int) error {
	for {
		f.mu.Lock()
		count, called := f.counts[op], f.called
		f.mu.Unlock()
		if count >= n {
			return nil
		}
		select {
		case <-called:
		case <-ctx.Done():
			return fmt.Errorf("faultstore: %d of %d calls of %v: %w", count, n, op, ctx.Err())
		}
	}
}
