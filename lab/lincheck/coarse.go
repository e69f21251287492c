package lincheck

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/reprise-go/reprise/core/store"
)

// CheckCoarse checks histories of processes over one set of records, in a store whose
// clock counts in seconds: a lease, a retention or a validity ends up to late after its
// time, and never early. Modules whose stores the module lab does not require call it.
//
// What ends late is free late: so there are more IDs than in other histories, or few
// attempts would be taken over.
func CheckCoarse(t *testing.T, late time.Duration, processes ...store.Store) {
	t.Helper()
	checked(t, coarse(late, processes), everything...)
}

// CheckCoarseUnderFaults is [CheckCoarse] while faults happen: fault is called until the
// histories end. The results of most calls have to be known, or a history shows little.
func CheckCoarseUnderFaults(t *testing.T, late time.Duration, fault func(n int), processes ...store.Store) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	var faults sync.WaitGroup
	faults.Go(func() {
		for n := 0; ctx.Err() == nil; n++ {
			fault(n)
		}
	})
	tally := checked(t, coarse(late, processes), "claimed", "in-progress", "completed", "complete", "release")
	stop()
	faults.Wait()
	all, lost := 0, 0
	for what, n := range tally {
		all += n
		if strings.HasPrefix(what, "unknown ") {
			lost += n
		}
	}
	t.Logf("the results of %d of %d calls are unknown", lost, all)
	if lost*5 > all {
		t.Error("want at most a fifth")
	}
}

func coarse(late time.Duration, processes []store.Store) *deployment {
	return &deployment{
		stores: processes, clock: clock{late: late},
		pace: pace{calls: 150, between: 300 * time.Millisecond, unit: 100 * time.Millisecond, ids: 24},
	}
}
