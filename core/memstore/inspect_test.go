package memstore_test

import (
	"testing"
	"time"

	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/store"
)

func TestInspectShowsVisibleRecords(t *testing.T) {
	inTime(t, func(t *testing.T) {
		s, op := memstore.New(), newOperation()
		_, err := s.Inspect(t.Context(), op.id)
		wantError(t, "Inspect", err, store.ErrNotFound)

		got := mustClaim(t, s, op.claim(), store.Claimed)
		time.Sleep(lease + time.Second)
		view, err := s.Inspect(t.Context(), op.id)
		want := store.Record{ID: op.id, State: store.StateLapsed, Attempt: 1, Fence: got.Fence, Lease: -time.Second, Validity: retention - lease - time.Second}
		if err != nil || view.Payload != nil || !sameView(view, want) {
			t.Fatalf("got %+v, %v; want %+v", view, err, want)
		}

		mustComplete(t, s, op.complete("answer"))
		view, err = s.Inspect(t.Context(), op.id)
		want = store.Record{ID: op.id, State: store.StateCompleted, Attempt: 1, Fence: got.Fence, Validity: retention}
		if err != nil || string(view.Payload) != "answer" || !sameView(view, want) {
			t.Fatalf("got %+v, %v; want %+v", view, err, want)
		}
		page, err := s.List(t.Context(), store.Query{Limit: 5})
		if err != nil || len(page.Records) != 1 || page.Records[0].Payload != nil || !sameView(page.Records[0], want) {
			t.Fatalf("listed %+v, %v; want %+v", page, err, want)
		}
	})
}

func TestListIsBoundedAndOmitsExpiredRecords(t *testing.T) {
	inTime(t, func(t *testing.T) {
		s, op := memstore.New(), newOperation()
		for n := range 50 {
			op.id = store.ID(numbered(n))
			mustClaim(t, s, op.claim(), store.Claimed)
		}
		page, err := s.List(t.Context(), store.Query{Limit: 30})
		if err != nil || len(page.Records) != 30 {
			t.Fatalf("listed %d, %v", len(page.Records), err)
		}
		time.Sleep(retention)
		if page, err := s.List(t.Context(), store.Query{Limit: 30}); err != nil || len(page.Records) != 0 || page.Next != "" {
			t.Fatalf("listed %+v, %v", page, err)
		}
	})
}

func TestResolveEndsOnlyTheLapsedRecordThatWasLookedAt(t *testing.T) {
	inTime(t, func(t *testing.T) {
		s, op := memstore.New(), newOperation()
		keep := store.Resolution{Payload: []byte("by hand"), Retention: time.Minute}
		resolve := func(fence uint64) error {
			r := keep
			r.Fence = fence
			return s.Resolve(t.Context(), op.id, r)
		}
		wantError(t, "gone", resolve(1), store.ErrRecordChanged)
		first := mustClaim(t, s, op.claim(), store.Claimed)
		wantError(t, "live", resolve(first.Fence), store.ErrRecordChanged)
		time.Sleep(lease)
		wantError(t, "another fence", resolve(first.Fence-1), store.ErrRecordChanged)
		wantError(t, "Resolve", resolve(first.Fence), nil)
		wantError(t, "completed", resolve(first.Fence), store.ErrRecordChanged)

		if got := mustClaim(t, s, op.claim(), store.Completed); string(got.Payload) != "by hand" {
			t.Errorf("kept %q", got.Payload)
		}
		wantError(t, "complete after a resolution", s.Complete(t.Context(), op.complete("late")), store.ErrLeaseLost)
		if got, err := s.Renew(t.Context(), op.renew()); err != nil || got[0] != store.RenewLost {
			t.Errorf("renewed %v, %v", got, err)
		}
		time.Sleep(time.Minute)
		mustClaim(t, s, op.claim(), store.Expired) // remembered for as long as without the operator
		time.Sleep(retention)
		mustClaim(t, s, op.claim(), store.Claimed)
	})
}

func sameView(a, b store.Record) bool {
	a.Payload, b.Payload = nil, nil
	return a.ID == b.ID && a.State == b.State && a.Attempt == b.Attempt && a.Fence == b.Fence &&
		a.Lease == b.Lease && a.Validity == b.Validity
}
