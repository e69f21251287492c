package memstore_test

import (
	"testing"
	"time"

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

func TestWatchWakesOnCompleteReleaseAndResolve(t *testing.T) {
	inTime(t, func(t *testing.T) {
		s, op := memstore.New(), newOperation()
		other := op
		other.id[31]++ // same shard
		first, stopFirst, err := s.Watch(t.Context(), op.id)
		if err != nil {
			t.Fatal(err)
		}
		second, stopSecond, err := s.Watch(t.Context(), op.id)
		if err != nil {
			t.Fatal(err)
		}
		defer stopSecond()

		mustClaim(t, s, other.claim(), store.Claimed)
		mustComplete(t, s, other.complete(""))
		mustClaim(t, s, op.claim(), store.Claimed)
		if woken(first) || woken(second) {
			t.Error("woken by another ID, or by a claim")
		}

		wantError(t, "Release", s.Release(t.Context(), op.id, op.owner), nil)
		if !woken(first) || !woken(second) {
			t.Error("not woken by the release")
		}

		stopFirst()
		stopFirst()
		got := mustClaim(t, s, op.claim(), store.Claimed)
		time.Sleep(lease)
		wantError(t, "Resolve", s.Resolve(t.Context(), op.id, store.Resolution{Fence: got.Fence, Forget: true}), nil)
		if !woken(second) {
			t.Error("not woken by the resolution")
		}
		mustClaim(t, s, op.claim(), store.Claimed)
		mustComplete(t, s, op.complete(""))
		if !woken(second) {
			t.Error("not woken by the completion")
		}
		if woken(first) {
			t.Error("woken after stop")
		}
	})
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
