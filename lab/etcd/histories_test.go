package etcd_test

import (
	"testing"
	"time"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/lincheck"
)

// A machine that is busy deletes later than late.
func TestEtcdIsLinearizable(t *testing.T) {
	t.Parallel()
	cluster, mine := start(t, 3), prefix()
	processes := make([]store.Store, 2)
	for i := range processes {
		processes[i] = open(t, connect(t, cluster.Addrs()...), mine)
	}
	lincheck.CheckCoarse(t, 2*late+5*time.Second, processes...)
}
