package memstore_test

import (
	"testing"
	"time"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
)

// Leases lapse and retentions end on the store's own clock.
func TestAdvanceMovesTheClockOfTheStore(t *testing.T) {
	t.Parallel()
	store := memstore.New()
	claim := func(owner byte) reprise.ClaimResult {
		res, err := store.Claim(t.Context(), reprise.ClaimRequest{
			ID: reprise.DeriveID("s", "", "k"), Owner: reprise.Owner{owner}, Lease: 30 * time.Second, Retention: time.Hour, Takeover: true,
		})
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	claim(1)
	store.Advance(29 * time.Second)
	if res := claim(2); res.Outcome != reprise.InProgress {
		t.Errorf("before the lease ends: %v", res.Outcome)
	}
	store.Advance(time.Second)
	if res := claim(3); res.Outcome != reprise.Claimed || res.Attempt != 2 {
		t.Errorf("after the lease: %v, attempt %d", res.Outcome, res.Attempt)
	}
	store.Advance(2 * time.Hour)
	if res := claim(4); res.Outcome != reprise.Claimed || res.Attempt != 1 {
		t.Errorf("after the retention: %v, attempt %d", res.Outcome, res.Attempt)
	}
	defer func() {
		if recover() == nil {
			t.Error("the clock goes backwards")
		}
	}()
	store.Advance(-1)
}
