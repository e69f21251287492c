package etcd_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/reprise-go/reprise/lab/etcd/etcdcluster"
)

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
// writes over one member: so on either side of each cut. None runs an operation that
// another ran.
func TestNothingRunsTwiceWhileLinksAreCut(t *testing.T) {
	t.Parallel()
	cluster := etcdcluster.StartLinked(t, 3)
	w := newWorld(t, cluster)
	addrs := cluster.Addrs()
	w.operations(w.store(addrs[0]), w.store(addrs[1]), w.store(addrs[2]))
	w.fail = func(n int) {
		leader := w.leader()
		a, b := (leader+1)%3, (leader+2)%3
		partition, before, refused := partitions[n%len(partitions)], cluster.Links.Held(), w.refused.Load()
		for _, cut := range partition.cuts(leader, a, b) {
			cluster.Links.Cut(cut[0], cut[1])
		}
		etcdcluster.Pause(w.Context(), time.Second+time.Duration(rand.Int64N(int64(3*time.Second))))
		cluster.Links.Heal()
		held := cluster.Links.Held() - before
		t.Logf("%s: the leader was %d and is %d, %d pieces of messages were lost, %d requests refused", partition.name, leader, w.leader(), held, w.refused.Load()-refused)
		if held == 0 {
			t.Errorf("%s: no message was lost", partition.name)
		}
		etcdcluster.Pause(w.Context(), time.Second)
	}
	w.run()
}
