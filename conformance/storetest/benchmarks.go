package storetest

import (
	"context"
	"testing"

	"github.com/reprise-go/reprise/conformance/internal/suite"
	"github.com/reprise-go/reprise/core/store"
)

// renewBatch is how many leases the benchmark of renewals renews at once.
const renewBatch = 64

// Benchmark measures the operations of a store, each with its allocations: a new key
// (claim and complete), a replay, a refusal, and a batch of renewals; one after the
// other, and from many goroutines. open is called once for each. Benchmark checks the
// answers, so a store that fails is not measured.
func Benchmark(b *testing.B, open func(testing.TB) store.Store) {
	for _, m := range []struct {
		name    string
		prepare func(*bench) func() // the measured operation, which may run in any goroutine
	}{
		{"new-key", newKey},
		{"replay", replays},
		{"refusal", refusal},
		{"renew-64", renewal},
	} {
		b.Run(m.name, func(b *testing.B) {
			run := m.prepare(&bench{b, open(b)})
			b.ReportAllocs()
			for b.Loop() {
				run()
			}
		})
		b.Run(m.name+"-parallel", func(b *testing.B) {
			run := m.prepare(&bench{b, open(b)})
			b.ReportAllocs()
			b.SetParallelism(32)
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					run()
				}
			})
		})
	}
}

type bench struct {
	*testing.B

	store store.Store
}

// payload is as long as the small result that the benchmarks of the project replay.
var payload = make([]byte, 256)

func request(id store.ID, owner store.Owner) store.ClaimRequest {
	return store.ClaimRequest{ID: id, Owner: owner, Lease: hour, Policy: store.Policy{Retention: hour}}
}

// claim claims and demands the outcome.
func (b *bench) claim(r store.ClaimRequest, want store.Outcome) store.ClaimResult {
	got, err := b.store.Claim(context.Background(), r)
	if err != nil || got.Outcome != want {
		b.Errorf("claim answered %v, %v; want %v", got.Outcome, err, want)
	}
	return got
}

// hold claims for the time of the benchmark.
func (b *bench) hold(r store.ClaimRequest) {
	b.Cleanup(func() {
		if err := b.store.Release(context.Background(), r.ID, r.Owner); err != nil {
			b.Errorf("release: %v", err)
		}
	})
	b.claim(r, store.Claimed)
}

// complete completes a granted claim, as the engine does.
func (b *bench) complete(id store.ID, owner store.Owner, granted store.ClaimResult) {
	r := store.CompleteRequest{
		ID: id, Owner: owner, Payload: payload, Policy: store.Policy{Retention: hour}, Attempt: granted.Attempt, Fence: granted.Fence,
	}
	if err := b.store.Complete(context.Background(), r); err != nil {
		b.Errorf("complete: %v", err)
	}
}

func newKey(b *bench) func() {
	return func() {
		id, owner := suite.NewID(), store.NewOwner()
		b.complete(id, owner, b.claim(request(id, owner), store.Claimed))
	}
}

func replays(b *bench) func() {
	id, owner := suite.NewID(), store.NewOwner()
	b.complete(id, owner, b.claim(request(id, owner), store.Claimed))
	return func() { b.claim(request(id, owner), store.Completed) }
}

func refusal(b *bench) func() {
	id, rival := suite.NewID(), store.NewOwner()
	b.hold(request(id, store.NewOwner()))
	return func() { b.claim(request(id, rival), store.InProgress) }
}

func renewal(b *bench) func() {
	batch := make([]store.RenewRequest, renewBatch)
	for i := range batch {
		batch[i] = store.RenewRequest{ID: suite.NewID(), Owner: store.NewOwner(), Lease: hour}
		b.hold(request(batch[i].ID, batch[i].Owner))
	}
	return func() {
		got, err := b.store.Renew(context.Background(), batch)
		if err != nil || len(got) != len(batch) || got[0] != store.Renewed {
			b.Errorf("renew answered %v, %v", got, err)
		}
	}
}
