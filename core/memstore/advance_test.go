package memstore_test

import (
	"testing"
	"time"

	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/store"
)

// Leases lapse and retentions end on the store's own clock.
func TestAdvanceMovesTheClockOfTheStore(t *testing.T) {
	t.Parallel()
	st := memstore.New()
	claim := func(owner byte) store.ClaimResult {
		res := must(st.Claim(t.Context(), store.ClaimRequest{
			ID: store.DeriveID("s", "", "k"), Owner: store.Owner{owner}, Lease: 30 * time.Second, Policy: store.Policy{Retention: time.Hour}, Takeover: true,
		}))
		return res
	}
	claim(1)
	st.Advance(29 * time.Second)
	if res := claim(2); res.Outcome != store.InProgress {
		t.Errorf("before the lease ends: %v", res.Outcome)
	}
	st.Advance(time.Second)
	if res := claim(3); res.Outcome != store.Claimed || res.Attempt != 2 {
		t.Errorf("after the lease: %v, attempt %d", res.Outcome, res.Attempt)
	}
	st.Advance(2 * time.Hour)
	if res := claim(4); res.Outcome != store.Claimed || res.Attempt != 1 {
		t.Errorf("after the retention: %v, attempt %d", res.Outcome, res.Attempt)
	}
	defer func() {
		if recover() == nil {
			t.Error("the clock goes backwards")
		}
	}()
	st.Advance(-1)
}
