package memstore_test

import (
	"testing"

	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/store"
)

func woken(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

func TestWatchKeepsOneValueAndEndsWithStop(t *testing.T) {
	inTime(t, func(t *testing.T) {
		s, op := memstore.New(), newOperation()
		changed, stop, err := s.Watch(t.Context(), op.id)
		if err != nil {
			t.Fatal(err)
		}
		release := func() {
			mustClaim(t, s, op.claim(), store.Claimed)
			wantError(t, "Release", s.Release(t.Context(), op.id, op.owner), nil)
		}
		release()
		release()
		if !woken(changed) || woken(changed) {
			t.Error("two changes did not leave one value")
		}
		stop()
		release()
		if woken(changed) {
			t.Error("woken after stop")
		}
	})
}
