package etcd_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/etcd/etcdcluster"
	"github.com/reprise-go/reprise/lab/lincheck"
	"github.com/reprise-go/reprise/servers"
)

// A machine that is busy deletes later than Late.
func TestEtcdIsLinearizable(t *testing.T) {
	t.Parallel()
	addrs, mine := etcdcluster.Start(t, 3).Addrs(), etcdcluster.Prefix()
	lincheck.CheckCoarse(t, 2*etcdcluster.Late+5*time.Second, process(t, mine, addrs...), process(t, mine, addrs...))
}

// process returns the store of a process that knows some members.
func process(t *testing.T, prefix string, addrs ...string) store.Store {
	t.Helper()
	return etcdcluster.Open(t, etcdcluster.Connect(t, addrs...), prefix)
}

// lateUnderFaults is how late a lease may end where a new leader starts all of them anew,
// with the lengths that they were granted with.
const lateUnderFaults = time.Minute

// Members are killed and frozen, the leader above all, sometimes so many that no majority
// is left.
func TestEtcdIsLinearizableWhileMembersFail(t *testing.T) {
	t.Parallel()
	cluster, mine := etcdcluster.Start(t, 3), etcdcluster.Prefix()
	fail := func(n int) {
		victims := []int{leader(t, cluster)}
		if n%4 == 3 { // and with it the majority
			victims = append(victims, (victims[0]+1)%len(cluster.Members))
		} else if n%4 == 2 {
			victims[0] = (victims[0] + 1) % len(cluster.Members) // a follower
		}
		for _, v := range victims {
			if n%2 == 0 {
				cluster.Members[v].Kill(t)
			} else {
				cluster.Members[v].Pause(t)
			}
		}
		etcdcluster.Pause(t.Context(), 500*time.Millisecond+rand.N(2*time.Second))
		for _, v := range victims {
			if n%2 == 0 {
				cluster.Members[v].Restart(t)
			} else {
				cluster.Members[v].Resume(t)
			}
		}
		etcdcluster.Pause(t.Context(), 5*time.Second)
	}
	lincheck.CheckCoarseUnderFaults(t, lateUnderFaults, fail, process(t, mine, cluster.Addrs()...), process(t, mine, cluster.Addrs()...))
}

// leader returns the index of the leader, as the members say it.
func leader(t *testing.T, cluster *servers.EtcdCluster) int {
	t.Helper()
	client := etcdcluster.Connect(t, cluster.Addrs()...)
	for range 100 {
		for i, addr := range cluster.Addrs() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			status, err := client.Status(ctx, addr)
			cancel()
			if err == nil && status.Leader == status.Header.MemberId {
				return i
			}
		}
		etcdcluster.Pause(t.Context(), 100*time.Millisecond)
	}
	t.Fatal("the cluster has no leader")
	return 0
}

// partitions are cuts between a leader and its followers a and b, as pairs of a member
// that sends and one that does not receive.
var partitions = []struct {
	name string
	cuts func(leader, a, b int) [][2]int
}{
	{"the leader is alone", func(l, a, b int) [][2]int { return [][2]int{{l, a}, {a, l}, {l, b}, {b, l}} }},
	{"the leader is not heard", func(l, a, b int) [][2]int { return [][2]int{{l, a}, {l, b}} }},
	{"the leader hears none", func(l, a, b int) [][2]int { return [][2]int{{a, l}, {b, l}} }},
	{"the leader and one do not hear each other", func(l, a, _ int) [][2]int { return [][2]int{{l, a}, {a, l}} }},
	{"a follower is alone", func(l, a, b int) [][2]int { return [][2]int{{l, a}, {a, l}, {a, b}, {b, a}} }},
	{"each hears only one other", func(l, a, b int) [][2]int { return [][2]int{{l, a}, {a, b}, {b, l}} }},
}

// Links between members are cut, both ways and one way, while each of three processes
// writes over one member: so on either side of each cut.
func TestEtcdIsLinearizableWhileLinksAreCut(t *testing.T) {
	t.Parallel()
	cluster, mine := etcdcluster.StartLinked(t, 3), etcdcluster.Prefix()
	cut := func(n int) {
		leads := leader(t, cluster)
		partition, before := partitions[n%len(partitions)], cluster.Links.Held()
		for _, pair := range partition.cuts(leads, (leads+1)%3, (leads+2)%3) {
			cluster.Links.Cut(pair[0], pair[1])
		}
		etcdcluster.Pause(t.Context(), time.Second+rand.N(3*time.Second))
		held := cluster.Links.Held() - before
		cluster.Links.Heal()
		t.Logf("%s: the leader was %d, %d pieces of messages were lost", partition.name, leads, held)
		if held == 0 && t.Context().Err() == nil {
			t.Errorf("%s: no message was lost", partition.name)
		}
		etcdcluster.Pause(t.Context(), 5*time.Second)
	}
	addrs := cluster.Addrs()
	lincheck.CheckCoarseUnderFaults(t, lateUnderFaults, cut, process(t, mine, addrs[0]), process(t, mine, addrs[1]), process(t, mine, addrs[2]))
}
