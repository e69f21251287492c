package memstore_test

import (
	"testing"
	"time"

	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/store"
)

func bounded(t *testing.T, b memstore.Bounds) *memstore.Store {
	t.Helper()
	s, err := memstore.NewBounded(b)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestNegativeBoundsAreRefused(t *testing.T) {
	t.Parallel()
	for _, b := range []memstore.Bounds{{Records: -1}, {Bytes: -1}} {
		_, err := memstore.NewBounded(b)
		wantError(t, "NewBounded", err, store.ErrInvalid)
	}
	mustClaim(t, bounded(t, memstore.Bounds{}), newOperation().claim(), store.Claimed)
}

// Live and valid records stay, and are still replayed; only a new key finds no room.
func TestFullStoreRefusesNewKeysAndKeepsItsRecords(t *testing.T) {
	inTime(t, func(t *testing.T) {
		s := bounded(t, memstore.Bounds{Records: 3})
		running, done, lapsed, next := newOperation(), newOperation(), newOperation(), newOperation()
		for i, op := range []*operation{&running, &done, &lapsed, &next} {
			op.id = store.ID(numbered(i))
		}
		mustClaim(t, s, lapsed.claim(), store.Claimed)
		time.Sleep(lease)
		mustClaim(t, s, done.claim(), store.Claimed)
		mustComplete(t, s, done.complete("answer"))
		mustClaim(t, s, running.claim(), store.Claimed)

		_, err := s.Claim(t.Context(), next.claim())
		wantError(t, "a fourth key", err, store.ErrFull)
		mustClaim(t, s, done.claim(), store.Completed)
		mustClaim(t, s, running.by(store.NewOwner()).claim(), store.InProgress)
		mustClaim(t, s, lapsed.by(store.NewOwner()).claim(), store.Claimed)
		_, err = s.Claim(t.Context(), next.claim())
		wantError(t, "a fourth key", err, store.ErrFull)

		wantError(t, "Release", s.Release(t.Context(), running.id, running.owner), nil)
		mustClaim(t, s, next.claim(), store.Claimed)
	})
}

// fill claims new keys of a scope until the store refuses one, and returns how many it
// got.
func fill(t *testing.T, s *memstore.Store, scope uint64, payload string) int {
	t.Helper()
	for n := 0; ; n++ {
		op := newOperation()
		op.id = store.ID(numbered(int(scope)<<32 | n))
		claim := op.claim()
		claim.Scope = scope
		if _, err := s.Claim(t.Context(), claim); err != nil {
			wantError(t, "Claim", err, store.ErrFull)
			return n
		}
		mustComplete(t, s, op.complete(payload))
	}
}

// Records that a full scope has already are replayed as ever, and a caller without a
// scope is served.
func TestNoScopeFillsTheStore(t *testing.T) {
	const size = 1000
	payload := string(make([]byte, size-400))
	for name, b := range map[string]memstore.Bounds{"records": {Records: 1000}, "bytes": {Bytes: 1000 * size}} {
		t.Run(name, func(t *testing.T) {
			inTime(t, func(t *testing.T) {
				s := bounded(t, b)
				if n := fill(t, s, 1, payload); n != 900 {
					t.Errorf("a scope alone holds %d of 1,000, want 900", n)
				}
				held := newOperation()
				held.id = store.ID(numbered(1 << 32))
				again := held.claim()
				again.Scope = 1
				mustClaim(t, s, again, store.Completed)
				if n := fill(t, s, 2, payload); n != 90 {
					t.Errorf("a second one gets %d of 100, want 90", n)
				}
				if n := fill(t, s, 3, payload); n != 9 {
					t.Errorf("a third one gets %d of 10, want 9", n)
				}
				if n := fill(t, s, 0, payload); n != 1 {
					t.Errorf("%d records of no scope, want the one that is left", n)
				}
				if got := s.Usage(); got[0].Used != 1000 || got[1].Used != 1000*size || got[0].Limit == 0 || got[1].Limit == 0 {
					t.Errorf("%+v", got)
				}
				time.Sleep(retention)
				if n := fill(t, s, 2, payload); n != 900 {
					t.Errorf("holds %d when all others are gone, want 900", n)
				}
				if got := s.Usage(); got[0].Used != 900 {
					t.Errorf("%+v after the retention", got)
				}
			})
		})
	}
}
