package transactional

import (
	"errors"
	"testing"
	"time"

	"github.com/reprise-go/reprise/core/store"
)

// TestClaimIsAnsweredByTheAttemptOfTheProcess: without a connection, while that attempt
// can still commit.
func TestClaimIsAnsweredByTheAttemptOfTheProcess(t *testing.T) {
	t.Parallel()
	s := newTestStore(t)
	a := &attempt{
		id: store.ID{1}, owner: store.NewOwner(), fingerprint: store.Fingerprint{1},
		number: 1, fence: 7, deadline: time.Now().Add(time.Hour),
	}
	s.attempts[a.owner], s.running[a.id] = a, a
	claim := func(owner store.Owner, fingerprint byte) store.ClaimRequest {
		return store.ClaimRequest{
			ID: a.id, Owner: owner, Fingerprint: store.Fingerprint{fingerprint}, Lease: time.Minute, Policy: store.Policy{Retention: time.Hour},
		}
	}
	for want, r := range map[store.Outcome]store.ClaimRequest{
		store.Claimed: claim(a.owner, 1), store.InProgress: claim(store.NewOwner(), 1), store.Mismatch: claim(store.NewOwner(), 2),
	} {
		if got, err := s.Claim(t.Context(), r); err != nil || got.Outcome != want {
			t.Errorf("%v, %v; want %v", got.Outcome, err, want)
		}
	}
	a.expired.Store(true)
	if _, err := s.Claim(t.Context(), claim(store.NewOwner(), 1)); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("beside an attempt that is over: %v", err)
	}
	if len(s.claiming) != 0 || s.Stats().InUse != 0 {
		t.Error("a claim that failed is still on its way")
	}
}
