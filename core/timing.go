package reprise

import (
	"time"

	"github.com/reprise-go/reprise/core/internal/chance"
)

// Every duration that is derived from a lease, here for the default of 30 s:
//
//	from when a lease was asked for
//	    until it is renewed               a third, ± a tenth of that    9 to 11 s
//	    until its local deadline          all but max(a tenth, 250 ms)  27 s
//	until a failed renewal is repeated    a twentieth                   1.5 s
//	for one call to Store.Renew           a sixth                       5 s
//	from MaxRun until it is unknown       all of it                     30 s
//	between two looks of the renewer      a quarter, at most 1 s        1 s

// renewalDue draws when to renew a lease that was asked for at sent. The draw keeps
// leases that were taken together from being renewed together for ever. The instants lie
// on a grid of a sixtieth of the lease, so that however many attempts run, those that are
// due at about the same time share a batch.
func renewalDue(sent instant, lease time.Duration) instant {
	third := max(lease, 0) / 3
	due := sent.add(third - third/20 + chance.Below(third*3/20+1))
	grid := third/20 + 1
	return due.add(-((due.mono%grid + grid) % grid)) // down to the grid, also where the clock reads less than zero
}

// renewalRetry is the pause after a renewal that was not answered.
func renewalRetry(lease time.Duration) time.Duration { return lease / 20 }

// renewalTimeout bounds one call to [store.Store].Renew.
func renewalTimeout(lease time.Duration) time.Duration { return lease / 6 }

// localDeadline is how long after it was asked for a lease is relied on. The margin
// before it runs out by the store's clock is for the drift of the clocks and for the
// handler to stop.
func localDeadline(lease time.Duration) time.Duration {
	return lease - max(lease/10, 250*time.Millisecond)
}

// renewerSleep is how long the renewer sleeps at most. No lease is due for renewal before
// a third of it, so looking every quarter means that a steady stream of short requests
// never has to wake the goroutine. One second bounds how late a deadline is noticed after
// the machine was suspended, when timers stood still.
func renewerSleep(lease time.Duration) time.Duration { return min(lease/4, time.Second) }

// jitter returns d ± a quarter.
func jitter(d time.Duration) time.Duration {
	return d - d/4 + chance.Below(d/2+1)
}
