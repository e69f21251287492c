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

func sameView(a, b store.Record) bool {
	a.Payload, b.Payload = nil, nil
	return a.ID == b.ID && a.State == b.State && a.Attempt == b.Attempt && a.Fence == b.Fence &&
		a.Lease == b.Lease && a.Validity == b.Validity
}
