package memstore_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/store"
)

func TestCompleteIsByTheOwnerAndOnce(t *testing.T) {
	inTime(t, func(t *testing.T) {
		s, op := memstore.New(), newOperation()
		zombie := op.by(store.NewOwner())
		wantError(t, "complete nothing", s.Complete(t.Context(), op.complete("none")), store.ErrLeaseLost)
		mustClaim(t, s, op.claim(), store.Claimed)
		wantError(t, "complete another's", s.Complete(t.Context(), zombie.complete("zombie")), store.ErrLeaseLost)

		buffer := op.complete("first")
		mustComplete(t, s, buffer)
		copy(buffer.Payload, "XXXXX") // the caller may reuse it
		mustComplete(t, s, op.complete("second"))
		wantError(t, "complete another's", s.Complete(t.Context(), zombie.complete("zombie")), store.ErrLeaseLost)
		if err := s.Release(t.Context(), op.id, op.owner); err != nil {
			t.Fatal(err)
		}
		if got := mustClaim(t, s, op.claim(), store.Completed); string(got.Payload) != "first" {
			t.Errorf("kept %q", got.Payload)
		}
	})
}

func TestReleaseIsByTheOwner(t *testing.T) {
	inTime(t, func(t *testing.T) {
		s, op := memstore.New(), newOperation()
		rival := op.by(store.NewOwner())
		mustClaim(t, s, op.claim(), store.Claimed)
		if err := s.Release(t.Context(), rival.id, rival.owner); err != nil {
			t.Fatal(err)
		}
		mustClaim(t, s, rival.claim(), store.InProgress)
		for range 2 {
			if err := s.Release(t.Context(), op.id, op.owner); err != nil {
				t.Fatal(err)
			}
		}
		wantError(t, "complete after release", s.Complete(t.Context(), op.complete("")), store.ErrLeaseLost)
		mustClaim(t, s, rival.claim(), store.Claimed)
	})
}

func TestRetentionCountsFromCompletion(t *testing.T) {
	inTime(t, func(t *testing.T) {
		s, op := memstore.New(), newOperation()
		mustClaim(t, s, op.claim(), store.Claimed)
		time.Sleep(lease / 2)
		done := op.complete("answer")
		done.Retention = time.Minute // shorter than the claim's
		mustComplete(t, s, done)
		time.Sleep(time.Minute - time.Nanosecond)
		mustClaim(t, s, op.claim(), store.Completed)
		time.Sleep(time.Nanosecond)
		mustClaim(t, s, op.claim(), store.Claimed)
	})
}

func TestLateCompletionSucceedsUnlessTakenOver(t *testing.T) {
	inTime(t, func(t *testing.T) {
		s, op := memstore.New(), newOperation()
		mustClaim(t, s, op.claim(), store.Claimed)
		time.Sleep(2 * lease)
		mustComplete(t, s, op.complete("late"))
		mustClaim(t, s, op.claim(), store.Completed)

		late := newOperation()
		late.id = store.ID(numbered(2))
		rival := late.by(store.NewOwner())
		mustClaim(t, s, late.claim(), store.Claimed)
		time.Sleep(lease)
		mustClaim(t, s, rival.claim(), store.Claimed)
		wantError(t, "late", s.Complete(t.Context(), late.complete("late")), store.ErrLeaseLost)
		mustComplete(t, s, rival.complete("rival"))
	})
}

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

func TestLiveLeaseOutlivesRetention(t *testing.T) {
	inTime(t, func(t *testing.T) {
		s, op := memstore.New(), newOperation()
		claim := op.claim()
		claim.Retention = lease / 2
		mustClaim(t, s, claim, store.Claimed)
		time.Sleep(lease - time.Nanosecond)
		if n, err := s.Purge(t.Context(), 10); n != 0 || err != nil {
			t.Fatalf("purged %d, %v", n, err)
		}
		mustClaim(t, s, op.by(store.NewOwner()).claim(), store.InProgress)
		time.Sleep(time.Nanosecond)
		if n, err := s.Purge(t.Context(), 10); n != 1 || err != nil {
			t.Fatalf("purged %d, %v", n, err)
		}
	})
}

func TestUnseenRecordIsNobodys(t *testing.T) {
	t.Parallel()
	for name, act := range map[string]func(context.Context, *memstore.Store, operation) error{
		"complete": func(ctx context.Context, s *memstore.Store, op operation) error {
			return s.Complete(ctx, op.complete("late"))
		},
		"renew": func(ctx context.Context, s *memstore.Store, op operation) error {
			got, err := s.Renew(ctx, op.renew())
			if err == nil && got[0] == store.RenewLost {
				err = store.ErrLeaseLost
			}
			return err
		},
		"inspect": func(ctx context.Context, s *memstore.Store, op operation) error {
			if _, err := s.Inspect(ctx, op.id); !errors.Is(err, store.ErrNotFound) {
				return err
			}
			return store.ErrLeaseLost
		},
	} {
		t.Run(name, func(t *testing.T) {
			inTime(t, func(t *testing.T) {
				s, op := memstore.New(), newOperation()
				mustClaim(t, s, op.claim(), store.Claimed)
				time.Sleep(retention)
				wantError(t, name, act(t.Context(), s, op), store.ErrLeaseLost)
			})
		})
	}
}
