package memstore_test

import (
	"bytes"
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/store"
)

// The decision table of store.Store.Claim, row by row: the record, the caller, the
// result.
func TestClaimDecides(t *testing.T) {
	t.Parallel()
	first, rival := newOperation(), newOperation()
	stranger := rival
	stranger.fingerprint = store.Fingerprint{2}

	refuse := rival.claim()
	refuse.Takeover = false
	once := rival.claim()
	once.MaxAttempts = 1
	twice := rival.claim()
	twice.MaxAttempts = 2
	own := first.claim()
	own.Takeover = false

	running := func(t *testing.T, s *memstore.Store) { mustClaim(t, s, first.claim(), store.Claimed) }
	lapsed := func(t *testing.T, s *memstore.Store) {
		running(t, s)
		time.Sleep(lease)
	}
	completed := func(t *testing.T, s *memstore.Store) {
		running(t, s)
		mustComplete(t, s, first.complete("answer"))
	}
	unseen := func(t *testing.T, s *memstore.Store) {
		running(t, s)
		time.Sleep(retention)
	}

	for _, row := range []struct {
		name    string
		stored  func(*testing.T, *memstore.Store)
		request store.ClaimRequest
		want    store.ClaimResult // without the fence
	}{
		{"nothing", func(*testing.T, *memstore.Store) {}, first.claim(), store.ClaimResult{Outcome: store.Claimed, Attempt: 1, Remaining: lease}},
		{"running, another request", running, stranger.claim(), store.ClaimResult{Outcome: store.Mismatch}},
		{"running, another owner", running, rival.claim(), store.ClaimResult{Outcome: store.InProgress, Remaining: lease}},
		{"running, its owner", running, own, store.ClaimResult{Outcome: store.Claimed, Attempt: 1, Remaining: lease}},
		{"lapsed, another request", lapsed, stranger.claim(), store.ClaimResult{Outcome: store.Mismatch}},
		{"lapsed, its owner", lapsed, own, store.ClaimResult{Outcome: store.Claimed, Attempt: 1}},
		{"lapsed, takeover refused", lapsed, refuse, store.ClaimResult{Outcome: store.Lapsed}},
		{"lapsed, attempts used up", lapsed, once, store.ClaimResult{Outcome: store.Lapsed}},
		{"lapsed, an attempt left", lapsed, twice, store.ClaimResult{Outcome: store.Claimed, Attempt: 2, Remaining: lease}},
		{"lapsed, takeover", lapsed, rival.claim(), store.ClaimResult{Outcome: store.Claimed, Attempt: 2, Remaining: lease}},
		{"completed, another request", completed, stranger.claim(), store.ClaimResult{Outcome: store.Mismatch}},
		{"completed, another owner", completed, rival.claim(), store.ClaimResult{Outcome: store.Completed, Payload: []byte("answer")}},
		{"completed, its owner", completed, own, store.ClaimResult{Outcome: store.Completed, Payload: []byte("answer")}},
		{"not valid any more", unseen, stranger.claim(), store.ClaimResult{Outcome: store.Claimed, Attempt: 1, Remaining: lease}},
	} {
		t.Run(row.name, func(t *testing.T) {
			inTime(t, func(t *testing.T) {
				s := memstore.New()
				row.stored(t, s)
				got := mustClaim(t, s, row.request, row.want.Outcome)
				if (got.Fence != 0) != (got.Outcome == store.Claimed) {
					t.Errorf("fence %d with outcome %v", got.Fence, got.Outcome)
				}
				if got.Attempt != row.want.Attempt || got.Remaining != row.want.Remaining || !bytes.Equal(got.Payload, row.want.Payload) {
					t.Errorf("got  %+v\nwant %+v", got, row.want)
				}
			})
		})
	}
}

func TestClaimRepeatedByItsOwnerStartsTheLeaseAnew(t *testing.T) {
	inTime(t, func(t *testing.T) {
		s, op := memstore.New(), newOperation()
		first := mustClaim(t, s, op.claim(), store.Claimed)
		time.Sleep(lease - time.Nanosecond)
		again := mustClaim(t, s, op.claim(), store.Claimed)
		if again.Attempt != 1 || again.Fence != first.Fence || again.Remaining != lease {
			t.Errorf("got %+v after %+v", again, first)
		}
	})
}

func TestOfManyClaimsOneIsGranted(t *testing.T) {
	t.Parallel()
	s, op := memstore.New(), newOperation()
	for n := range 200 {
		op.id = store.ID(numbered(n))
		var granted atomic.Int32
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				got := must(s.Claim(t.Context(), op.by(store.NewOwner()).claim()))
				if got.Outcome == store.Claimed {
					granted.Add(1)
				}
			})
		}
		wg.Wait()
		if granted.Load() != 1 {
			t.Fatalf("%d claims of ID %d were granted", granted.Load(), n)
		}
	}
}

func TestInvalidRequestsAreRefused(t *testing.T) {
	t.Parallel()
	s, op := memstore.New(), newOperation()
	claim := op.claim()
	claim.Lease = 0
	_, err := s.Claim(t.Context(), claim)
	wantError(t, "Claim", err, store.ErrInvalid)

	good := op.renew()[0]
	_, err = s.Renew(t.Context(), []store.RenewRequest{good, {ID: op.id, Owner: op.owner}})
	wantError(t, "Renew", err, store.ErrInvalid)

	complete := op.complete("")
	complete.Retention = store.MaxDuration + 1
	wantError(t, "Complete", s.Complete(t.Context(), complete), store.ErrInvalid)
	wantError(t, "Resolve", s.Resolve(t.Context(), op.id, store.Resolution{}), store.ErrInvalid)
	for _, limit := range []int{0, -1, 10_001} {
		_, err = s.List(t.Context(), store.Query{Limit: limit})
		wantError(t, "List", err, store.ErrInvalid)
	}
	for _, limit := range []int{0, 100_001} {
		_, err = s.Purge(t.Context(), limit)
		wantError(t, "Purge", err, store.ErrInvalid)
	}
}

func TestEndedContextChangesNoRecord(t *testing.T) {
	t.Parallel()
	s, op := memstore.New(), newOperation()
	mustClaim(t, s, op.claim(), store.Claimed)
	ended, cancel := context.WithCancel(t.Context())
	cancel()

	other := op
	other.id = store.ID(numbered(2))
	_, err := s.Claim(ended, other.claim())
	wantError(t, "Claim", err, store.ErrUnavailable)
	wantError(t, "Claim", err, context.Canceled)
	_, err = s.Renew(ended, op.renew())
	wantError(t, "Renew", err, store.ErrUnavailable)
	wantError(t, "Complete", s.Complete(ended, op.complete("")), store.ErrUnavailable)
	wantError(t, "Release", s.Release(ended, op.id, op.owner), store.ErrUnavailable)
	_, err = s.Inspect(ended, op.id)
	wantError(t, "Inspect", err, store.ErrUnavailable)
	_, _, err = s.Watch(ended, op.id)
	wantError(t, "Watch", err, store.ErrUnavailable)

	page, err := s.List(t.Context(), store.Query{Limit: 10})
	if list := page.Records; err != nil || len(list) != 1 || list[0].State != store.StateRunning {
		t.Errorf("the store holds %+v, %v; want the one record in progress", page, err)
	}
}
