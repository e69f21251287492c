package etcd_test

import (
	"testing"
	"time"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/etcd/etcdcluster"
	"github.com/reprise-go/reprise/lab/lincheck"
)

// A machine that is busy deletes later than Late.
func TestEtcdIsLinearizable(t *testing.T) {
	t.Parallel()
	cluster, mine := etcdcluster.Start(t, 3), etcdcluster.Prefix()
	processes := make([]store.Store, 2)
	for i := range processes {
		processes[i] = etcdcluster.Open(t, etcdcluster.Connect(t, cluster.Addrs()...), mine)
	}
	lincheck.CheckCoarse(t, 2*etcdcluster.Late+5*time.Second, processes...)
}

// A new leader starts all leases anew, with the lengths that they were granted with.
func TestEtcdIsLinearizableWhileMembersFail(t *testing.T) {
	t.Parallel()
	w := newWorld(t, etcdcluster.Start(t, 3))
	const late = time.Minute
	lincheck.CheckCoarseUnderFaults(t, late, func(n int) {
		w.failMembers(n)
		etcdcluster.Pause(t.Context(), 4*time.Second)
	}, w.store(w.cluster.Addrs()...), w.store(w.cluster.Addrs()...))
}
