package etcd_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/servers"
)

// Members of a cluster are killed and frozen, the leader above all, sometimes so many that
// no majority is left, while two processes run operations with AtMostOnce. None runs
// twice, and every result is the first one.
func TestNothingRunsTwiceWhileMembersFail(t *testing.T) {
	t.Parallel()
	faults := 12
	if testing.Short() {
		faults = 4
	}
	if os.Getenv("REPRISE_SOAK") != "" {
		faults = 200
	}
	w := &world{T: t, cluster: start(t, 3), runs: map[string]*atomic.Int64{}, results: map[string]string{}}
	mine := prefix()
	for i := range w.engines {
		client := connect(t, w.cluster.Addrs()...)
		engine, err := reprise.New(open(t, client, mine), reprise.Config{Lease: 5 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		w.engines[i] = engine
	}
	ctx, stop := context.WithCancel(t.Context())
	var clients sync.WaitGroup
	for range 16 {
		clients.Go(func() { w.work(ctx) })
	}
	for n := range faults {
		w.fail(n)
	}
	stop()
	clients.Wait()
	w.judge(faults)
	for _, engine := range w.engines {
		closing, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 30*time.Second)
		if err := engine.Close(closing); err != nil {
			t.Error(err)
		}
		cancel()
	}
}

// world is two processes over a cluster that fails.
type world struct {
	*testing.T

	cluster *servers.EtcdCluster
	engines [2]*reprise.Engine

	mu      sync.Mutex
	next    int
	runs    map[string]*atomic.Int64 // of each operation
	results map[string]string

	done, replays, refused atomic.Int64
}

// work runs operations, some of them again or twice at once.
func (w *world) work(ctx context.Context) {
	for ctx.Err() == nil {
		w.mu.Lock()
		w.next++
		n := w.next
		if rand.IntN(2) == 0 {
			n = max(1, n-rand.IntN(40))
		}
		key := fmt.Sprintf("operation %d", n)
		runs := w.runs[key]
		if runs == nil {
			runs = new(atomic.Int64)
			w.runs[key] = runs
		}
		w.mu.Unlock()
		w.operate(ctx, w.engines[rand.IntN(2)], key, runs)
	}
}

func (w *world) operate(ctx context.Context, engine *reprise.Engine, key string, runs *atomic.Int64) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	result, err := reprise.Do(ctx, engine, reprise.Operation{
		Scope: "faults", Key: key, Fingerprint: store.FingerprintOf([]byte(key)), Preset: reprise.AtMostOnce, Retention: time.Hour,
	}, nil, func(context.Context) (string, error) {
		return fmt.Sprintf("%s, run %d", key, runs.Add(1)), nil
	})
	if err != nil {
		w.refused.Add(1)
		return
	}
	w.done.Add(1)
	got := result.Value
	if result.Replayed {
		w.replays.Add(1)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if first, known := w.results[key]; known && first != got {
		w.Errorf("%q is answered %q, and before %q", key, got, first)
	}
	w.results[key] = got
}

// fail makes members fail for a while.
func (w *world) fail(n int) {
	w.Helper()
	victims := []int{w.leader()}
	if n%4 == 3 { // and with it the majority
		victims = append(victims, (victims[0]+1)%len(w.cluster.Members))
	} else if n%4 == 2 {
		victims[0] = (victims[0] + 1) % len(w.cluster.Members) // a follower
	}
	for _, v := range victims {
		if n%2 == 0 {
			w.cluster.Members[v].Kill(w)
		} else {
			w.cluster.Members[v].Pause(w)
		}
	}
	pause(w.Context(), 500*time.Millisecond+time.Duration(rand.Int64N(int64(2*time.Second))))
	for _, v := range victims {
		if n%2 == 0 {
			w.cluster.Members[v].Restart(w)
		} else {
			w.cluster.Members[v].Resume(w)
		}
	}
	pause(w.Context(), time.Second)
}

// leader returns the index of the leader, as the members say it.
func (w *world) leader() int {
	w.Helper()
	client := connect(w, w.cluster.Addrs()...)
	for range 100 {
		for i, addr := range w.cluster.Addrs() {
			ctx, cancel := context.WithTimeout(w.Context(), time.Second)
			status, err := client.Status(ctx, addr)
			cancel()
			if err == nil && status.Leader == status.Header.MemberId {
				return i
			}
		}
		pause(w.Context(), 100*time.Millisecond)
	}
	w.Fatal("the cluster has no leader")
	return 0
}

func (w *world) judge(faults int) {
	w.Helper()
	for key, runs := range w.runs {
		if n := runs.Load(); n > 1 {
			w.Errorf("%q ran %d times", key, n)
		}
	}
	w.Logf("%d faults: %d operations, %d answers, %d of them replays, %d refused", faults, len(w.runs), w.done.Load(), w.replays.Load(), w.refused.Load())
	if w.done.Load() < int64(20*faults) || w.replays.Load() < int64(5*faults) {
		w.Error("too little happened to show anything")
	}
}

// pause waits for d, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
