package reprise_test

import (
	"context"
	"runtime"
	"strconv"
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
