package lincheck

import (
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
	checked(t, &deployment{
		stores: processes, clock: clock{late: late},
		pace: pace{calls: 150, between: 300 * time.Millisecond, unit: 100 * time.Millisecond, ids: 24},
	}, everything...)
}
