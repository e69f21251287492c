package reprise_test

import (
	"context"
	"strconv"
	"testing"

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
			var err error
			if e, err = reprise.New(memstore.New(), reprise.Config{}); err != nil {
				b.Fatal(err)
			}
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
