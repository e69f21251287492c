package repriseetcd

import (
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// A machine that slept has a monotonic clock that stood still, and one whose wall clock
// was set back has that. Either clock is enough to replace a lease.
func TestLeaseIsReplacedWhenEitherClockSaysSo(t *testing.T) {
	t.Parallel()
	const period = time.Hour
	soon, late := time.Now().Add(period-time.Second), time.Now().Add(period+time.Minute)
	for name, c := range map[string]struct {
		until end
		grant bool
	}{
		"neither":   {end{late, late}, false},
		"slept":     {end{late, soon.Round(0)}, true},
		"set back":  {end{soon, late.Round(0)}, true},
		"long past": {end{}, true},
	} {
		current := &lease{granted: make(chan struct{}), id: 7, until: c.until}
		close(current.granted)
		all := leases{current: map[time.Duration]*lease{period: current}, ends: map[clientv3.LeaseID]end{7: c.until}}
		if _, grant := all.take(period); grant != c.grant {
			t.Errorf("%s: a new lease: %t, want %t", name, grant, c.grant)
		}
	}
}

// The ends that are remembered are those of leases that have not ended.
func TestEndsOfPastLeasesAreForgotten(t *testing.T) {
	t.Parallel()
	all := leases{current: map[time.Duration]*lease{}, ends: map[clientv3.LeaseID]end{}}
	for id := range clientv3.LeaseID(10 * maxPeriods) {
		all.remember(&lease{id: id, until: endAfter(time.Now(), -time.Second)})
	}
	if len(all.ends) > 2*maxPeriods {
		t.Errorf("%d ends are remembered", len(all.ends))
	}
}

// A lease that was taken for many writes is replaced before it ends.
func TestLeaseIsReplacedAfterManyUses(t *testing.T) {
	t.Parallel()
	const period = time.Hour
	current := &lease{granted: make(chan struct{}), until: endAfter(time.Now(), 2*period), uses: maxUses - 1}
	close(current.granted)
	all := leases{current: map[time.Duration]*lease{period: current}}
	for _, want := range []bool{false, true} {
		if _, grant := all.take(period); grant != want {
			t.Errorf("a new lease: %t, want %t", grant, want)
		}
	}
}
