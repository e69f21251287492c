package transactional

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// TestLockIsWaitedForWithinTheDeadline: with time left for the answer, and never not at
// all.
func TestLockIsWaitedForWithinTheDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		if got := lockWait(t.Context()); got != lostCommitWait {
			t.Errorf("without a deadline: %v", got)
		}
		for left, want := range map[time.Duration]time.Duration{
			time.Second: 900 * time.Millisecond, 150 * time.Millisecond: 50 * time.Millisecond,
			149 * time.Millisecond: 50 * time.Millisecond, 0: 50 * time.Millisecond,
		} {
			ctx, cancel := context.WithTimeout(t.Context(), left)
			if got := lockWait(ctx); got != want {
				t.Errorf("with %v left: %v, want %v", left, got, want)
			}
			cancel()
		}
	})
}
