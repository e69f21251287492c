package memstore

import (
	"context"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-go/reprise/core/store"
)

// After any sequence of operations the index, the order of expiry and the counted room
// agree with each other.
func TestBookkeepingAgreesAfterAnyOperations(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			s := New()
			random := rand.New(rand.NewPCG(seed, 0))
			owners := []store.Owner{{1}, {2}}
			for range 2_000 {
				step(s, random, owners)
			}
			checkBookkeeping(t, s, seed)
		})
	}
}

func step(s *Store, random *rand.Rand, owners []store.Owner) {
	ctx := context.Background()
	id := store.ID{byte(random.IntN(2)), byte(random.IntN(40))}
	owner := owners[random.IntN(len(owners))]
	span := time.Duration(1+random.IntN(20)) * time.Second
	switch random.IntN(8) {
	case 0, 1, 2:
		_, _ = s.Claim(ctx, store.ClaimRequest{
			ID: id, Owner: owner, Scope: uint64(random.IntN(4)), Lease: span / 2, Policy: store.Policy{Retention: span}, Takeover: random.IntN(2) == 0,
		})
	case 3:
		_ = s.Complete(ctx, store.CompleteRequest{ID: id, Owner: owner, Payload: make([]byte, random.IntN(99)), Policy: store.Policy{Retention: span}})
	case 4:
		_, _ = s.Renew(ctx, []store.RenewRequest{{ID: id, Owner: owner, Lease: 2 * span}})
	case 5:
		_ = s.Release(ctx, id, owner)
	case 6:
		_, _ = s.Purge(ctx, 1+random.IntN(3))
	case 7:
		time.Sleep(span / 10)
	}
}

func checkBookkeeping(t *testing.T, s *Store, seed uint64) {
	t.Helper()
	var records, bytes int64
	scopes := make(map[*scopeUsage][2]int64)
	for i := range s.shards {
		sh := &s.shards[i]
		if len(sh.records) != len(sh.order) {
			t.Fatalf("seed %d: %d records, %d in the order of expiry", seed, len(sh.records), len(sh.order))
		}
		for place, entry := range sh.order {
			rec := entry.rec
			if found := sh.records[rec.id]; rec.index != place || found != rec {
				t.Fatalf("seed %d: the record at place %d thinks it is at %d", seed, place, rec.index)
			}
			if parent := sh.order[max(0, place-1)/2]; entry.at < parent.at || rec.end() < entry.at {
				t.Fatalf("seed %d: a record that ends at %v has its turn at %v, below one at %v", seed, rec.end(), entry.at, parent.at)
			}
			if s := rec.scope; s != nil {
				scopes[s] = [2]int64{scopes[s][0] + 1, scopes[s][1] + rec.size()}
			}
			records++
			bytes += rec.size()
		}
	}
	if records == 0 {
		t.Fatalf("seed %d: nothing to check", seed)
	}
	counted := 0
	for i := range s.usage.scopes {
		for scope, used := range s.usage.scopes[i].used {
			counted++
			if want := scopes[used]; used.scope != scope || used.records != want[0] || used.bytes.Load() != want[1] {
				t.Fatalf("seed %d: scope %d holds %v and counts %d records in %d", seed, scope, want, used.records, used.bytes.Load())
			}
		}
	}
	if counted != len(scopes) {
		t.Fatalf("seed %d: %d scopes hold records, and %d are counted", seed, len(scopes), counted)
	}
	if records != s.usage.records.Load() || bytes != s.usage.bytes.Load() {
		t.Fatalf("seed %d: holds %d records in %d bytes and counts %d in %d", seed, records, bytes, s.usage.records.Load(), s.usage.bytes.Load())
	}
}
