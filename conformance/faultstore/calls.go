package faultstore

import (
	"context"
	"fmt"
	"slices"

	"github.com/reprise-go/reprise/core/store"
)

// Call is one call that the store received. The field of its operation is set, and ID and
// Owner are repeated from it, except for a batch of renewals.
type Call struct {
	Op       Op
	ID       store.ID
	Owner    store.Owner
	Claim    store.ClaimRequest
	Renew    []store.RenewRequest
	Complete store.CompleteRequest
	Unknown  store.UnknownRequest
}

// clone returns a copy that shares no memory with the caller of the store.
func (c Call) clone() Call {
	c.Renew = slices.Clone(c.Renew)
	c.Complete.Payload = slices.Clone(c.Complete.Payload)
	return c
}

// Calls returns the calls received so far, in the order of their arrival, including those
// that were not executed. The caller must not modify the data that they point to.
func (f *Faults) Calls() []Call {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.calls)
}

// Count returns how often op was called so far.
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
