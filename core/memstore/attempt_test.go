package memstore_test

import (
	"testing"
	"time"

	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/store"
)

func TestRenewAnswersPerEntry(t *testing.T) {
	inTime(t, func(t *testing.T) {
		s := memstore.New()
		running, done, lapsed, lost := newOperation(), newOperation(), newOperation(), newOperation()
		for i, op := range []*operation{&running, &done, &lapsed, &lost} {
			op.id = store.ID(numbered(i))
		}
		mustClaim(t, s, lapsed.claim(), store.Claimed)
		mustClaim(t, s, lost.claim(), store.Claimed)
		time.Sleep(lease)
		mustClaim(t, s, lost.by(store.NewOwner()).claim(), store.Claimed)
		mustClaim(t, s, running.claim(), store.Claimed)
		mustClaim(t, s, done.claim(), store.Claimed)
		mustComplete(t, s, done.complete(""))
		time.Sleep(lease / 2)

		var batch []store.RenewRequest
		for _, op := range []operation{running, done, lapsed, lost} {
			batch = append(batch, op.renew()...)
		}
		got := must(s.Renew(t.Context(), batch))
		want := []store.RenewStatus{store.Renewed, store.RenewCompleted, store.Renewed, store.RenewLost}
		for i := range want {
			if got[i] != want[i] {
				t.Errorf("entry %d: %v, want %v", i, got[i], want[i])
			}
		}
		for _, op := range []operation{running, lapsed} {
			if got := mustClaim(t, s, op.by(store.NewOwner()).claim(), store.InProgress); got.Remaining != lease {
				t.Errorf("%v left of a renewed lease, want %v", got.Remaining, lease)
			}
		}
		if got, err := s.Renew(t.Context(), nil); err != nil || len(got) != 0 {
			t.Errorf("an empty batch answered %v, %v", got, err)
		}
	})
}
