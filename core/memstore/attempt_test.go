package memstore_test

import (
	"context"
	"errors"
	"testing"
	"time"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
)

func TestCompleteIsByTheOwnerAndOnce(t *testing.T) {
	inTime(t, func(t *testing.T) {
		s, op := memstore.New(), newOperation()
		zombie := op.by(reprise.NewOwner())
		wantError(t, "complete nothing", s.Complete(t.Context(), op.complete("none")), reprise.ErrLeaseLost)
		mustClaim(t, s, op.claim(), reprise.Claimed)
		wantError(t, "complete another's", s.Complete(t.Context(), zombie.complete("zombie")), reprise.ErrLeaseLost)

		buffer := op.complete("first")
		mustComplete(t, s, buffer)
		copy(buffer.Payload, "XXXXX") // the caller may reuse it
		mustComplete(t, s, op.complete("second"))
		wantError(t, "complete another's", s.Complete(t.Context(), zombie.complete("zombie")), reprise.ErrLeaseLost)
		if err := s.Release(t.Context(), op.id, op.owner); err != nil {
			t.Fatal(err)
		}
		if got := mustClaim(t, s, op.claim(), reprise.Completed); string(got.Payload) != "first" {
			t.Errorf("kept %q", got.Payload)
		}
	})
}

func TestReleaseIsByTheOwner(t *testing.T) {
	inTime(t, func(t *testing.T) {
		s, op := memstore.New(), newOperation()
		rival := op.by(reprise.NewOwner())
		mustClaim(t, s, op.claim(), reprise.Claimed)
		if err := s.Release(t.Context(), rival.id, rival.owner); err != nil {
			t.Fatal(err)
		}
		mustClaim(t, s, rival.claim(), reprise.InProgress)
		for range 2 {
			if err := s.Release(t.Context(), op.id, op.owner); err != nil {
				t.Fatal(err)
			}
		}
		wantError(t, "complete after release", s.Complete(t.Context(), op.complete("")), reprise.ErrLeaseLost)
		mustClaim(t, s, rival.claim(), reprise.Claimed)
	})
}

func TestRetentionCountsFromCompletion(t *testing.T) {
	inTime(t, func(t *testing.T) {
		s, op := memstore.New(), newOperation()
		mustClaim(t, s, op.claim(), reprise.Claimed)
		time.Sleep(lease / 2)
		done := op.complete("answer")
		done.Retention = time.Minute // shorter than the claim's
		mustComplete(t, s, done)
		time.Sleep(time.Minute - time.Nanosecond)
		mustClaim(t, s, op.claim(), reprise.Completed)
		time.Sleep(time.Nanosecond)
		mustClaim(t, s, op.claim(), reprise.Claimed)
	})
}

func TestLateCompletionSucceedsUnlessTakenOver(t *testing.T) {
	inTime(t, func(t *testing.T) {
		s, op := memstore.New(), newOperation()
		mustClaim(t, s, op.claim(), reprise.Claimed)
		time.Sleep(2 * lease)
		mustComplete(t, s, op.complete("late"))
		mustClaim(t, s, op.claim(), reprise.Completed)

		late := newOperation()
		late.id = reprise.ID(numbered(2))
		rival := late.by(reprise.NewOwner())
		mustClaim(t, s, late.claim(), reprise.Claimed)
		time.Sleep(lease)
		mustClaim(t, s, rival.claim(), reprise.Claimed)
		wantError(t, "late", s.Complete(t.Context(), late.complete("late")), reprise.ErrLeaseLost)
		mustComplete(t, s, rival.complete("rival"))
	})
}

func TestRenewAnswersPerEntry(t *testing.T) {
	inTime(t, func(t *testing.T) {
		s := memstore.New()
		running, done, lapsed, lost := newOperation(), newOperation(), newOperation(), newOperation()
		for i, op := range []*operation{&running, &done, &lapsed, &lost} {
			op.id = reprise.ID(numbered(i))
		}
		mustClaim(t, s, lapsed.claim(), reprise.Claimed)
		mustClaim(t, s, lost.claim(), reprise.Claimed)
		time.Sleep(lease)
		mustClaim(t, s, lost.by(reprise.NewOwner()).claim(), reprise.Claimed)
		mustClaim(t, s, running.claim(), reprise.Claimed)
		mustClaim(t, s, done.claim(), reprise.Claimed)
		mustComplete(t, s, done.complete(""))
		time.Sleep(lease / 2)

		var batch []reprise.RenewRequest
		for _, op := range []operation{running, done, lapsed, lost} {
			batch = append(batch, op.renew()...)
		}
		got, err := s.Renew(t.Context(), batch)
		if err != nil {
			t.Fatal(err)
		}
		want := []reprise.RenewStatus{reprise.Renewed, reprise.RenewCompleted, reprise.Renewed, reprise.RenewLost}
		for i := range want {
			if got[i] != want[i] {
				t.Errorf("entry %d: %v, want %v", i, got[i], want[i])
			}
		}
		for _, op := range []operation{running, lapsed} {
			if got := mustClaim(t, s, op.by(reprise.NewOwner()).claim(), reprise.InProgress); got.Remaining != lease {
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
		mustClaim(t, s, claim, reprise.Claimed)
		time.Sleep(lease - time.Nanosecond)
		if n, err := s.Purge(t.Context(), 10); n != 0 || err != nil {
			t.Fatalf("purged %d, %v", n, err)
		}
		mustClaim(t, s, op.by(reprise.NewOwner()).claim(), reprise.InProgress)
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
			if err == nil && got[0] == reprise.RenewLost {
				err = reprise.ErrLeaseLost
			}
			return err
		},
		"inspect": func(ctx context.Context, s *memstore.Store, op operation) error {
			if _, err := s.Inspect(ctx, op.id); !errors.Is(err, reprise.ErrNotFound) {
				return err
			}
			return reprise.ErrLeaseLost
		},
	} {
		t.Run(name, func(t *testing.T) {
			inTime(t, func(t *testing.T) {
				s, op := memstore.New(), newOperation()
				mustClaim(t, s, op.claim(), reprise.Claimed)
				time.Sleep(retention)
				wantError(t, name, act(t.Context(), s, op), reprise.ErrLeaseLost)
			})
		})
	}
}
