package leased

import (
	"testing"
	"time"

	"github.com/reprise-go/reprise/core/store"
)

// TestCreatedRecordNoticesAWait: the lease of a record that was created after a wait
// of 10 ms or more is not whole.
func TestCreatedRecordNoticesAWait(t *testing.T) {
	t.Parallel()
	const lease = time.Second
	for waited, want := range map[time.Duration]bool{
		0: false, slowClaim - time.Microsecond: false, slowClaim: false, slowClaim + time.Microsecond: true,
	} {
		c := createdRecord{clock: 5_000_000, fence: 5_000_000, leaseUntil: 5_000_000 + (lease - waited).Microseconds()}
		if got := c.waited(lease); got != want {
			t.Errorf("after a wait of %v: %t", waited, got)
		}
		if got := c.result(); got.Outcome != store.Claimed || got.Attempt != 1 || got.Fence != 5_000_000 || got.Remaining != lease-waited {
			t.Errorf("after a wait of %v: %+v", waited, got)
		}
	}
}
