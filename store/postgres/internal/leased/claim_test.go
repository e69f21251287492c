package leased

import (
	"testing"
	"time"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/internal/record"
	"github.com/reprise-go/reprise/store/postgres/internal/table"
)

// TestClaimNoticesAWait: the lease of a record that was written after a wait of 10 ms or
// more is not whole.
func TestClaimNoticesAWait(t *testing.T) {
	t.Parallel()
	const lease = time.Second
	for after, want := range map[time.Duration]bool{
		0: false, slowClaim - time.Microsecond: false, slowClaim: false, slowClaim + time.Microsecond: true,
	} {
		wrote := &table.Seen{Seen: record.Seen{Clock: 5_000_000, Attempt: 2, Fence: 4_000_000, LeaseUntil: 5_000_000 + (lease - after).Microseconds()}}
		if got := waited(wrote, lease); got != want {
			t.Errorf("after a wait of %v: %t", after, got)
		}
		if got := granted(wrote); got.Outcome != store.Claimed || got.Attempt != 2 || got.Fence != 4_000_000 || got.Remaining != lease-after {
			t.Errorf("after a wait of %v: %+v", after, got)
		}
	}
}
