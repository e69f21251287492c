package transactional

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/internal/slots"
)

// TestClaimWaitsForASlotWithinItsDeadline: it leaves a tenth of its time to the claim
// itself, and says how many attempts there may be.
func TestClaimWaitsForASlotWithinItsDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &Store{slots: slots.Slots{Limit: 1}}
		if _, done, err := s.waitForSlot(t.Context(), store.ClaimRequest{}); done || err != nil {
			t.Fatalf("a free slot: %t, %v", done, err)
		}
		place := s.slots.Enqueue()
		start := time.Now()
		wait, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := s.slots.Take(wait, place); err == nil || time.Since(start) != time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		if got := s.noSlot(start).Error(); !strings.Contains(got, "no transaction available within 1s (all 1 in use)") || !errors.Is(s.noSlot(start), store.ErrBusy) {
			t.Error(got)
		}
	})
}
