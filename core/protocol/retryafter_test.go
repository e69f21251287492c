package protocol

import (
	"math"
	"testing"
	"time"
)

func TestR20RetryAfterFollowsTheRestOfALease(t *testing.T) {
	t.Parallel()
	const s, forever = time.Second, time.Duration(math.MaxInt64)
	for _, row := range []struct{ rest, lease, want time.Duration }{
		{0, 30 * s, s}, // the owner runs in this process
		{-1, 30 * s, s},
		{math.MinInt64, 30 * s, s},
		{30 * s, 30 * s, s}, // just claimed or renewed
		{19 * s, 30 * s, s}, // about to be renewed
		{15*s + 1, 30 * s, s},
		{15 * s, 30 * s, 10 * s}, // a renewal is missing
		{10 * s, 30 * s, 10 * s},
		{7 * s, 30 * s, 7 * s},
		{1500 * time.Millisecond, 30 * s, 1500 * time.Millisecond}, // sent as 2 s
		{s, 30 * s, s},
		{1, 30 * s, s},
		{60 * s, 30 * s, s}, // of an engine with longer leases
		{forever, 30 * s, s},
		{400 * time.Millisecond, s, s},
		{forever / 2, forever, 10 * s},
	} {
		if got := retryInProgress(row.rest, row.lease); got != row.want {
			t.Errorf("with %v of %v left the client waits %v, want %v", row.rest, row.lease, got, row.want)
		}
	}
}
