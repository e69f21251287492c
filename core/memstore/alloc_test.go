package memstore_test

import (
	"context"
	"testing"

	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/store"
)

var answer = make([]byte, 256)

// claimAndComplete runs one new key through the store. It hands each error to report,
// which keeps it free of allocations.
func claimAndComplete(s *memstore.Store, op operation, report func(...any)) {
	claimed, err := s.Claim(context.Background(), op.claim())
	if err != nil || claimed.Outcome != store.Claimed {
		report(claimed.Outcome, err)
	}
	r := store.CompleteRequest{ID: op.id, Owner: op.owner, Payload: answer, Policy: store.Policy{Retention: retention}}
	if err := s.Complete(context.Background(), r); err != nil {
		report(err)
	}
}

// The record and the copy of its payload; the growth of the index and the order of expiry
// is a fraction of an allocation.
func TestNewKeyAllocatesTwiceAndReplayNever(t *testing.T) {
	s, op, n := memstore.New(), newOperation(), 0
	if got := testing.AllocsPerRun(50_000, func() {
		op.id = store.ID(numbered(n))
		claimAndComplete(s, op, t.Fatal)
		n++
	}); got > 2 {
		t.Errorf("a new key: %v allocations, want 2 at most", got)
	}
	ctx := t.Context()
	if got := testing.AllocsPerRun(1000, func() {
		if got, err := s.Claim(ctx, op.claim()); err != nil || got.Outcome != store.Completed {
			t.Fatal(got.Outcome, err)
		}
	}); got != 0 {
		t.Errorf("a replay: %v allocations, want 0", got)
	}
}
