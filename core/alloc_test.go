package reprise_test

import (
	"bytes"
	"context"
	"fmt"
	"runtime"
	"runtime/pprof"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/store"
)

// cycle runs one operation through the engine: a new key to its completion, or a replay.
func cycle(ctx context.Context, e *reprise.Engine, op reprise.Operation, report func(...any)) {
	res, err := e.Begin(ctx, op)
	if err != nil {
		report(err)
	}
	if res.Outcome == reprise.Replayed {
		return
	}
	end, err := res.Attempt.Complete(reprise.Completion{Payload: body}) //nolint:contextcheck // bounded by the engine, not by its client
	if err != nil || end.End != reprise.EndRecorded {
		report(end, err)
	}
}

var body = make([]byte, 256)

// keys returns n different keys, so that making them is not measured.
func keys(n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = strconv.Itoa(i)
	}
	return list
}

// raceAllocations is the allocations that the race detector adds.
var raceAllocations = 0.0

// The maxima were measured. The engine allocates the attempt, and the context of the
// claim where the request has values that the store may read. The memory store's share of
// a new key is two more, the record and the copy of its payload.
func TestAllocationsOfTheEngine(t *testing.T) {
	type values struct{}
	t.Run("context with values", func(t *testing.T) {
		testAllocations(t, context.WithValue(t.Context(), values{}, 1), memstore.New(), 3, 0)
	})
	t.Run("context with values that the store may read", func(t *testing.T) {
		store := struct{ *memstore.Store }{memstore.New()} // has IgnoresValues, and is not the one that does
		testAllocations(t, context.WithValue(t.Context(), values{}, 1), store, 4, 1)
	})
	t.Run("background", func(t *testing.T) { testAllocations(t, context.Background(), memstore.New(), 3, 0) }) //nolint:usetesting // it is what is tested
}

func testAllocations(t *testing.T, ctx context.Context, store store.Store, newKey, replay float64) {
	t.Helper()
	newKey, replay = newKey+raceAllocations, replay+raceAllocations
	e := must(reprise.New(store, reprise.Config{}))
	defer func() { _ = e.Close(context.WithoutCancel(ctx)) }()
	op, list, n := order(""), keys(20_001), 0
	if got := testing.AllocsPerRun(len(list)-1, func() {
		op.Key = list[n]
		cycle(ctx, e, op, t.Fatal)
		n++
	}); got > newKey {
		t.Errorf("a new key: %v allocations, want %v at most", got, newKey)
	}
	if got := testing.AllocsPerRun(10_000, func() { cycle(ctx, e, op, t.Fatal) }); got > replay {
		t.Errorf("a replay: %v allocations, want %v at most", got, replay)
	}
}

func BenchmarkNewKey(b *testing.B) {
	list := keys(1 << 16)
	ctx, op, n := b.Context(), order(""), 0
	var e *reprise.Engine
	b.ReportAllocs()
	for b.Loop() {
		if n%len(list) == 0 { // before the keys, and the store, are used up
			e = must(reprise.New(memstore.New(), reprise.Config{}))
		}
		op.Key = list[n%len(list)]
		cycle(ctx, e, op, b.Fatal)
		n++
	}
}

func BenchmarkReplay(b *testing.B) {
	e := must(reprise.New(memstore.New(), reprise.Config{}))
	ctx, op := b.Context(), order("k")
	cycle(ctx, e, op, b.Fatal)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			cycle(ctx, e, op, b.Error)
		}
	})
}

// P12: 10,000 attempts in flight take at most 1 KiB each, the record in the memory store
// included. It is not parallel, because it counts the memory of the process.
func TestP12AttemptsInFlightAreSmall(t *testing.T) {
	const attempts, most = 10_000, 1 << 10
	e := must(reprise.New(memstore.New(), reprise.Config{}))
	type values struct{}
	ctx, op, list := context.WithValue(t.Context(), values{}, 1), order(""), keys(attempts)
	running := make([]*reprise.Attempt, attempts)
	inUse := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC() // memory in pools
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := inUse()
	for i := range running {
		op.Key = list[i]
		res, err := e.Begin(ctx, op)
		if err != nil || res.Outcome != reprise.Claimed {
			t.Fatal(res.Outcome, err)
		}
		running[i] = res.Attempt
	}
	each := (int64(inUse()) - int64(before)) / attempts
	t.Logf("%d bytes an attempt", each)
	if each > most {
		t.Errorf("an attempt takes %d bytes, want %d at most", each, most)
	}
	for _, a := range running {
		release(t, a)
	}
	if err := closeWithin(t, e, time.Minute); err != nil {
		t.Error(err)
	}
}

// BenchmarkLocks shows P12: how often callers wait for locks of the engine and of the
// memory store, and for which one most, and which part of their time that takes. The
// callers of "threads" have a thread each, so that there are more of them than cores. On
// a machine that does something else the time is mostly that of a holder whose thread
// does not run; the number of waits is not.
func BenchmarkLocks(b *testing.B) {
	for _, callers := range []int{1, 4, 16} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) { benchmarkLocks(b, callers) })
		b.Run(fmt.Sprintf("threads=%d", callers), func(b *testing.B) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(callers))
			benchmarkLocks(b, callers)
		})
	}
}

func benchmarkLocks(b *testing.B, callers int) {
	b.Helper()
	defer runtime.SetMutexProfileFraction(runtime.SetMutexProfileFraction(1))
	before := lockWaits(b)
	e := must(reprise.New(memstore.New(), reprise.Config{}))
	ctx, list := b.Context(), keys(min(b.N, 300_000)) // more would fill the store
	b.ResetTimer()
	var wg sync.WaitGroup
	for caller := range callers {
		wg.Go(func() {
			op := order("")
			for i := caller; i < b.N; i += callers {
				op.Key = list[i%len(list)]
				cycle(ctx, e, op, b.Error)
				runtime.Gosched() // as a request does that waits for its client: no caller is interrupted after its time slice
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	all := b.Elapsed().Seconds() * float64(callers) / 100
	var total, worst waits
	name := "no lock"
	for lock, w := range lockWaits(b) {
		w.n, w.seconds = w.n-before[lock].n, w.seconds-before[lock].seconds
		total.n, total.seconds = total.n+w.n, total.seconds+w.seconds
		if w.n > worst.n {
			name, worst = lock, w
		}
	}
	b.ReportMetric(1000*float64(total.n)/float64(b.N), "waits/1000")
	b.ReportMetric(1000*float64(worst.n)/float64(b.N), "most/1000")
	b.ReportMetric(total.seconds/all, "%-time")
	b.ReportMetric(worst.seconds/all, "%-time-most")
	b.Logf("most often for %s", name)
}

// waits is how often goroutines waited for a lock, and how long in all.
type waits struct {
	n       int
	seconds float64
}

// lockWaits returns the waits for the locks of this module so far, by the function that
// held them.
func lockWaits(tb testing.TB) map[string]waits {
	tb.Helper()
	var text bytes.Buffer
	if err := pprof.Lookup("mutex").WriteTo(&text, 1); err != nil {
		tb.Fatal(err)
	}
	list := make(map[string]waits)
	rate, cycles, n := 1.0, 0.0, 0
	for line := range strings.Lines(text.String()) {
		if got, _ := fmt.Sscanf(line, "cycles/second=%g", &rate); got == 1 {
			continue
		}
		if got, _ := fmt.Sscanf(line, "%g %d @", &cycles, &n); got == 2 {
			continue
		}
		column := strings.Split(line, "\t")
		if len(column) < 3 || !strings.Contains(line, "reprise/core") || n == 0 {
			continue
		}
		function, _, _ := strings.Cut(column[2], "+") // the innermost one of the module
		w := list[function]
		list[function] = waits{w.n + n, w.seconds + cycles/rate}
		n = 0
	}
	return list
}
