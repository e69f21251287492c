package repriseetcd

import (
	"context"
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
		all := leases{current: map[sharers]*lease{{second: 7}: current}, ends: map[clientv3.LeaseID]end{7: c.until}}
		if _, grant := all.take(period, sharers{second: 7}); grant != c.grant {
			t.Errorf("%s: a new lease: %t, want %t", name, grant, c.grant)
		}
	}
}

// The ends that are remembered are those of leases that have not ended.
func TestEndsOfPastLeasesAreForgotten(t *testing.T) {
	t.Parallel()
	all := leases{current: map[sharers]*lease{}, ends: map[clientv3.LeaseID]end{}}
	for id := range clientv3.LeaseID(10 * maxShared) {
		all.remember(&lease{id: id, until: endAfter(time.Now(), -time.Second)})
	}
	if len(all.ends) > 2*maxShared {
		t.Errorf("%d ends are remembered", len(all.ends))
	}
}

// A lease that was taken for many writes is replaced before it ends.
func TestLeaseIsReplacedAfterManyUses(t *testing.T) {
	t.Parallel()
	const period = time.Hour
	current := &lease{granted: make(chan struct{}), until: endAfter(time.Now(), 2*period), uses: maxUses - 1}
	close(current.granted)
	all := leases{current: map[sharers]*lease{{second: 7}: current}}
	for _, want := range []bool{false, true} {
		if _, grant := all.take(period, sharers{second: 7}); grant != want {
			t.Errorf("a new lease: %t, want %t", grant, want)
		}
	}
}

// server answers that every lease lasts for an hour.
type server struct{ clientv3.Lease }

func (server) TimeToLive(context.Context, clientv3.LeaseID, ...clientv3.LeaseOption) (*clientv3.LeaseTimeToLiveResponse, error) {
	return &clientv3.LeaseTimeToLiveResponse{TTL: 3600}, nil
}

// A renewal writes a record anew that ends soon. If a wall clock that was set ahead made
// it do so, the record would end with its attempt, and with it the memory of an operation
// that must not run again.
func TestClockThatWasSetDoesNotShortenALease(t *testing.T) {
	t.Parallel()
	client := clientv3.NewCtxClient(t.Context())
	client.Lease = server{}
	at := time.Now().Add(time.Minute)
	all := leases{client: client, ends: map[clientv3.LeaseID]end{
		1: {at, at.Round(0)}, 2: {at, at.Add(-24 * time.Hour).Round(0)}, 3: {at.Add(-24 * time.Hour), at.Round(0)},
	}}
	for id, most := range map[clientv3.LeaseID]time.Duration{1: time.Minute, 2: time.Hour, 3: time.Hour, 4: time.Hour} {
		if left, err := all.left(t.Context(), id); err != nil || left > most || left < most-5*time.Second {
			t.Errorf("lease %d: %v, %v, want %v", id, left, err, most)
		}
	}
}

// Whatever ends in the same minute shares a lease, such as all that ends at midnight. No
// lease ends before its period, or later than the period and the time for sharing.
func TestLeasesAreSharedByTheirEnd(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	shared := map[sharers]bool{}
	for at := noon; at.Before(noon.Add(12*time.Hour - time.Second)); at = at.Add(7*time.Second + time.Millisecond) {
		period := noon.Add(12 * time.Hour).Sub(at)
		of := sharersOf(at, period)
		if left := time.Unix(of.second, 0).Sub(at); left < period || left > period+sharing(period) {
			t.Errorf("%v before the end, a lease lasts for %v", period, left)
		}
		shared[of] = true
	}
	if len(shared) > 20 { // one for each length of the periods in binary digits, and each time for sharing
		t.Errorf("until midnight there are %d leases", len(shared))
	}
}

// grants counts the leases that a server grants.
type grants struct {
	clientv3.Lease
	n *int
}

func (g grants) Grant(_ context.Context, seconds int64) (*clientv3.LeaseGrantResponse, error) {
	*g.n++
	return &clientv3.LeaseGrantResponse{ID: clientv3.LeaseID(*g.n), TTL: seconds}, nil
}

// A new leader starts a lease again with its first length, and a clock that was set ahead
// makes a lease seem to end sooner: neither makes a short period as long as another one.
func TestAShortPeriodSharesNoLongLease(t *testing.T) {
	t.Parallel()
	n := 0
	client := clientv3.NewCtxClient(t.Context())
	client.Lease = grants{n: &n}
	all := leases{client: client, current: map[sharers]*lease{}, ends: map[clientv3.LeaseID]end{}}
	now := time.Now()
	of := sharersOf(now, 30*time.Second)
	if long := sharersOf(now.Add(-24*time.Hour), 24*time.Hour+30*time.Second); long == of {
		t.Errorf("a lease of a day and one of 30 s are both %+v", of)
	}
	first, err := all.lasting(t.Context(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	same, err := all.lasting(t.Context(), time.Hour)
	if err != nil || n > 2 || n == 1 && same != first { // the hour may end in the next minute by now
		t.Errorf("%d leases for an hour, %v", n, err)
	}
	granted := n
	same.until.monotonic = same.until.monotonic.Add(time.Hour) // the wall clock was set ahead by an hour
	if other, err := all.lasting(t.Context(), time.Hour); err != nil || n == granted || other == same {
		t.Errorf("shares a lease whose clocks disagree: %v", err)
	}
}
