package etcd_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	reprisehttp "github.com/reprise-go/reprise/adapters/nethttp"
	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/job"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/etcd/etcdcluster"
	"github.com/reprise-go/reprise/lab/serve"
	"github.com/reprise-go/reprise/servers"
)

// Members of a cluster are killed and frozen, the leader above all, sometimes so many
// that no majority is left, while two processes run operations with AtMostOnce. None runs
// twice, and every result is the first one.
func TestNothingRunsTwiceWhileMembersFail(t *testing.T) {
	t.Parallel()
	w := newWorld(t, etcdcluster.Start(t, 3))
	w.operations(w.store(w.cluster.Addrs()...), w.store(w.cluster.Addrs()...))
	w.run()
}

// operations lets a process over each store run operations with AtMostOnce.
func (w *world) operations(stores ...store.Store) {
	w.Helper()
	w.processes = len(stores)
	engines := make([]*reprise.Engine, len(stores))
	for i, st := range stores {
		engine, err := reprise.New(st, reprise.Config{Lease: lease})
		if err != nil {
			w.Fatal(err)
		}
		w.closes = append(w.closes, engine.Close)
		engines[i] = engine
	}
	w.ask = func(ctx context.Context, process int, key string, run func() string) (string, bool, error) {
		result, err := job.Do(ctx, engines[process], reprise.Operation{
			Scope: "faults", Key: key, Fingerprint: store.FingerprintOf([]byte(key)), Preset: reprise.AtMostOnce, Retention: time.Hour,
		}, nil, func(context.Context) (string, error) { return run(), nil })
		return result.Value, result.Replayed, err
	}
}

// The same, over HTTP, with response bodies in a Redis that loses them: it is killed and
// has no disk. An operation whose body is lost is not run again.
func TestNothingRunsTwiceWhileBlobsAreLost(t *testing.T) {
	t.Parallel()
	w := newWorld(t, etcdcluster.Start(t, 3))
	redis := servers.Redis.Start(t)
	var handlers [2]http.Handler
	for i := range handlers {
		blobs, closes, err := serve.OpenRedisBlobs(t.Context(), serve.StoreOptions{RedisURL: redis.URL()}, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(closes)
		guard, err := protocol.New(w.store(w.cluster.Addrs()...), protocol.Config{
			Preset: reprise.AtMostOnce, Required: true, Offload: protocol.Offloading{Blobs: blobs}, Limits: protocol.Limits{ResponseBody: 256},
			Engine: reprise.Config{Lease: lease},
		})
		if err != nil {
			t.Fatal(err)
		}
		w.closes = append(w.closes, guard.Close)
		handlers[i] = reprisehttp.Middleware(guard, reprisehttp.Unscoped)(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(rw, strings.Repeat(runOf(r)()+"\n", 100))
		}))
	}
	var lost atomic.Int64
	w.ask = func(ctx context.Context, process int, key string, run func() string) (string, bool, error) {
		r := httptest.NewRequestWithContext(context.WithValue(ctx, runKey{}, run), http.MethodPost, "/pay", http.NoBody)
		r.Header.Set("Idempotency-Key", strings.ReplaceAll(key, " ", "-"))
		got := httptest.NewRecorder()
		handlers[process].ServeHTTP(got, r)
		if got.Code == http.StatusConflict && strings.Contains(got.Body.String(), "result-unavailable") {
			lost.Add(1)
		}
		if got.Code != http.StatusOK {
			return "", false, errors.New(got.Body.String())
		}
		return got.Body.String(), got.Header().Get("Idempotent-Replayed") != "", nil
	}
	w.also = func(n int) {
		if n%3 == 0 {
			redis.Kill(t)
			redis.Restart(t)
			w.again(20)
		}
	}
	w.run()
	t.Logf("%d answers were lost with their bodies", lost.Load())
	if lost.Load() == 0 {
		t.Error("no body was lost, so nothing was shown about it")
	}
}

// runKey is the key of a context for the function that runs an operation.
type runKey struct{}

func runOf(r *http.Request) func() string { return r.Context().Value(runKey{}).(func() string) }

const lease = 5 * time.Second

// world is two processes over a cluster that fails.
type world struct {
	*testing.T

	cluster *servers.EtcdCluster
	prefix  string
	closes  []func(context.Context) error

	// ask asks a process for the result of an operation, which run runs.
	ask  func(ctx context.Context, process int, key string, run func() string) (got string, replayed bool, err error)
	also func(n int) // fails besides, with the n-th fault
	fail func(n int) // is the n-th fault, from its begin to its end

	processes int

	mu      sync.Mutex
	next    int
	runs    map[string]*atomic.Int64 // of each operation
	results map[string]string

	done, replays, refused atomic.Int64
}

func newWorld(t *testing.T, cluster *servers.EtcdCluster) *world {
	t.Helper()
	w := &world{
		T: t, cluster: cluster, processes: 2, prefix: etcdcluster.Prefix(), also: func(int) {}, runs: map[string]*atomic.Int64{}, results: map[string]string{},
	}
	w.fail = w.failMembers
	return w
}

// again asks for the results of some operations that are done.
func (w *world) again(most int) {
	w.mu.Lock()
	keys := slices.Collect(maps.Keys(w.results))
	runs := maps.Clone(w.runs)
	w.mu.Unlock()
	for _, key := range keys[:min(most, len(keys))] {
		w.operate(w.Context(), key, runs[key])
	}
}

// store returns the store of a process that knows some members.
func (w *world) store(addrs ...string) store.Store {
	w.Helper()
	return etcdcluster.Open(w, etcdcluster.Connect(w, addrs...), w.prefix)
}

// run runs operations until all faults have passed, and judges them.
func (w *world) run() {
	w.Helper()
	faults := 12
	if os.Getenv("REPRISE_SOAK") != "" {
		faults = 200
	}
	ctx, stop := context.WithCancel(w.Context())
	defer stop()
	var clients sync.WaitGroup
	for range 16 {
		clients.Go(func() { w.work(ctx) })
	}
	for n := range faults {
		done, replays := w.done.Load()+20, w.replays.Load()+5
		w.also(n)
		w.fail(n)
		for began := time.Now(); w.done.Load() < done || w.replays.Load() < replays; {
			if time.Since(began) > time.Minute {
				w.Fatal("after a fault few operations are answered")
			}
			etcdcluster.Pause(w.Context(), 10*time.Millisecond)
		}
	}
	stop()
	clients.Wait()
	w.judge(faults)
	for _, end := range w.closes {
		closing, cancel := context.WithTimeout(context.WithoutCancel(w.Context()), 30*time.Second)
		if err := end(closing); err != nil {
			w.Error(err)
		}
		cancel()
	}
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
		w.operate(ctx, key, runs)
	}
}

func (w *world) operate(ctx context.Context, key string, runs *atomic.Int64) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	got, replayed, err := w.ask(ctx, rand.IntN(w.processes), key, func() string { return fmt.Sprintf("%s, run %d", key, runs.Add(1)) })
	if err != nil {
		w.refused.Add(1)
		return
	}
	w.done.Add(1)
	if replayed {
		w.replays.Add(1)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if first, known := w.results[key]; known && first != got {
		w.Errorf("%q is answered %q, and before %q", key, got, first)
	}
	w.results[key] = got
}

// failMembers makes members fail for a while.
func (w *world) failMembers(n int) {
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
	etcdcluster.Pause(w.Context(), 500*time.Millisecond+time.Duration(rand.Int64N(int64(2*time.Second))))
	for _, v := range victims {
		if n%2 == 0 {
			w.cluster.Members[v].Restart(w)
		} else {
			w.cluster.Members[v].Resume(w)
		}
	}
	etcdcluster.Pause(w.Context(), time.Second)
}

// leader returns the index of the leader, as the members say it.
func (w *world) leader() int {
	w.Helper()
	client := etcdcluster.Connect(w, w.cluster.Addrs()...)
	for range 100 {
		for i, addr := range w.cluster.Addrs() {
			ctx, cancel := context.WithTimeout(w.Context(), time.Second)
			status, err := client.Status(ctx, addr)
			cancel()
			if err == nil && status.Leader == status.Header.MemberId {
				return i
			}
		}
		etcdcluster.Pause(w.Context(), 100*time.Millisecond)
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
}
