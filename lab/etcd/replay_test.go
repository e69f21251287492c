package etcd_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/etcd/etcdcluster"
)

// BenchmarkEtcdReplay compares a replay with a bare linearizable read of as many bytes.
// Each caller does both in turn, so that both meet the same load.
func BenchmarkEtcdReplay(b *testing.B) {
	client, mine := etcdcluster.Connect(b, etcdcluster.Start(b, 3).Addrs()...), etcdcluster.Prefix()
	st := etcdcluster.Open(b, client, mine)
	_, end := claimed(b, st, "replayed")
	end.Payload = make([]byte, 307)
	if err := st.Complete(b.Context(), end); err != nil {
		b.Fatal(err)
	}
	if _, err := client.Put(b.Context(), mine+"bare", string(end.Payload)); err != nil {
		b.Fatal(err)
	}
	replay := func() {
		if got, err := st.Claim(b.Context(), claimOf("replayed")); err != nil || got.Outcome != store.Completed {
			b.Errorf("%v, %v", got.Outcome, err)
		}
	}
	for range 100 { // until replays are common
		replay()
	}
	for name, callers := range map[string]int{"alone": 1, "callers=16": 16} {
		b.Run(name, func(b *testing.B) {
			var bare, replays atomic.Int64
			var group sync.WaitGroup
			for range callers {
				group.Go(func() {
					for range (b.N + callers - 1) / callers {
						begun := time.Now()
						if _, err := client.Get(b.Context(), mine+"bare"); err != nil {
							b.Error(err)
						}
						between := time.Now()
						replay()
						bare.Add(int64(between.Sub(begun)))
						replays.Add(int64(time.Since(between)))
					}
				})
			}
			group.Wait()
			b.ReportMetric(float64(bare.Load())/float64(replays.Load()), "replay/read")
		})
	}
}
