package reprise_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/store"
)

// statuses answers a whole batch alike.
func statuses(n int, status store.RenewStatus) []store.RenewStatus {
	return slices.Repeat([]store.RenewStatus{status}, n)
}

// Handlers are cancelled in time while the store hangs on a batch, also by a store that
// does not even heed its context.
func TestBatchThatHangsDelaysNoCancellation(t *testing.T) {
	for name, heed := range map[string]bool{"heeds its context": true, "does not": false} {
		inTimeNamed(t, name, func(t *testing.T) {
			b := setup(t, reprise.Config{})
			var mu sync.Mutex
			out, most := 0, 0
			let := make(chan struct{})
			b.store.OnRenew = func(ctx context.Context, rs []store.RenewRequest) ([]store.RenewStatus, error) {
				mu.Lock()
				out++
				most = max(most, out)
				mu.Unlock()
				start := time.Now()
				if heed {
					<-ctx.Done()
				} else {
					<-let
				}
				if took := time.Since(start); errors.Is(ctx.Err(), context.DeadlineExceeded) && heed && took != lease/6 {
					t.Errorf("a renewal may take %v, want a sixth of the lease", took)
				}
				mu.Lock()
				out--
				mu.Unlock()
				return nil, store.ErrUnknown
			}
			first := b.claim(t, order("first"))
			time.Sleep(lease / 4)
			second := b.claim(t, order("second"))
			time.Sleep(lease*3/4 - margin - time.Millisecond)
			wantCause(t, first.Context(), nil)
			b.want(t, order("first"), reprise.InProgress)
			time.Sleep(time.Millisecond)
			wantCause(t, first.Context(), store.ErrLeaseLost)
			wantCause(t, second.Context(), nil)
			time.Sleep(lease / 4)
			wantCause(t, second.Context(), store.ErrLeaseLost)
			mu.Lock()
			if most != 1 {
				t.Errorf("%d batches at once, want one", most)
			}
			mu.Unlock()
			close(let)
			release(t, first)
			release(t, second)
			b.events.wantCount(t, "lease-lost", 2)
		})
	}
}

func TestStatusesOfARenewal(t *testing.T) {
	for _, c := range []struct {
		name   string
		answer func(try int, rs []store.RenewRequest) ([]store.RenewStatus, error)
		lostAt time.Duration // the latest; zero: never
	}{
		{"busy twice, then renewed", func(try int, rs []store.RenewRequest) ([]store.RenewStatus, error) {
			if try%3 != 0 {
				return statuses(len(rs), store.RenewBusy), nil
			}
			return nil, nil
		}, 0},
		{"failed twice, then renewed", func(try int, rs []store.RenewRequest) ([]store.RenewStatus, error) {
			if try%3 != 0 {
				return nil, store.ErrUnknown
			}
			return nil, nil
		}, 0},
		{"lost", func(_ int, rs []store.RenewRequest) ([]store.RenewStatus, error) {
			return statuses(len(rs), store.RenewLost), nil
		}, lease/3 + lease/30},
		{"always busy", func(_ int, rs []store.RenewRequest) ([]store.RenewStatus, error) {
			return statuses(len(rs), store.RenewBusy), nil
		}, lease - margin},
		{"always unavailable", func(int, []store.RenewRequest) ([]store.RenewStatus, error) {
			return nil, store.ErrUnavailable
		}, lease - margin},
		{"of another length", func(_ int, rs []store.RenewRequest) ([]store.RenewStatus, error) {
			return statuses(len(rs)+1, store.Renewed), nil
		}, lease - margin},
		{"no answer that there is", func(_ int, rs []store.RenewRequest) ([]store.RenewStatus, error) {
			return statuses(len(rs), 0), nil
		}, lease - margin},
	} {
		inTimeNamed(t, c.name, func(t *testing.T) {
			b := setup(t, reprise.Config{})
			var renewals atomic.Int64
			b.store.OnRenew = func(ctx context.Context, rs []store.RenewRequest) ([]store.RenewStatus, error) {
				got, err := c.answer(int(renewals.Add(1)), rs)
				if got == nil && err == nil {
					return b.store.Store.Renew(ctx, rs)
				}
				return got, err
			}
			a, start := b.claim(t, order("k")), time.Now()
			if c.lostAt == 0 {
				time.Sleep(10 * lease)
				wantCause(t, a.Context(), nil)
			} else {
				<-a.Context().Done()
				wantCause(t, a.Context(), store.ErrLeaseLost)
				if took := time.Since(start); took > c.lostAt {
					t.Errorf("cancelled after %v, want %v at most", took, c.lostAt)
				}
				b.events.wantCount(t, "lease-lost", 1)
			}
			b.store.Heal()
			complete(t, a, "answer", reprise.EndRecorded) // not taken over
		})
	}
}

func TestMaxRunIsAnHourUnlessThereIsNone(t *testing.T) {
	for maxRun, want := range map[time.Duration]error{0: reprise.ErrRunTooLong, -1: nil} {
		inTimeNamed(t, maxRun.String(), func(t *testing.T) {
			b := setup(t, reprise.Config{MaxRun: maxRun})
			a := b.claim(t, order("k"))
			time.Sleep(time.Hour - 1)
			wantCause(t, a.Context(), nil)
			time.Sleep(time.Nanosecond)
			wantCause(t, a.Context(), want)
			if want == nil {
				time.Sleep(24 * time.Hour)
				wantCause(t, a.Context(), nil)
			}
			release(t, a)
		})
	}
}

// One attempt of an operation runs in a process, also when one caller fails open while
// the claim of another is granted. Which of them enters first is the scheduler's choice,
// so the test repeats. The store answers its first claim late, and later ones when their
// callers' budgets are about to end.
func TestFailingOpenNeverRunsBesideAGrantedClaim(t *testing.T) {
	t.Parallel()
	for range 100 {
		synctest.Test(t, func(t *testing.T) {
			b := setup(t, reprise.Config{})
			var claims atomic.Int64
			b.store.OnClaim = func(ctx context.Context, r store.ClaimRequest) (store.ClaimResult, error) {
				if claims.Add(1) == 1 {
					time.Sleep(1500 * time.Millisecond)
					return store.ClaimResult{Outcome: store.InProgress}, nil
				}
				select {
				case <-ctx.Done():
					return store.ClaimResult{}, fmt.Errorf("%w: no answer", store.ErrUnknown)
				case <-time.After(time.Second):
					return b.store.Store.Claim(ctx, r)
				}
			}
			var s answers
			s.begin(t.Context(), b.Engine, open(order("k")), 1)
			time.Sleep(10 * time.Millisecond)
			s.begin(t.Context(), b.Engine, open(order("k")), 3)
			time.Sleep(1400 * time.Millisecond)
			s.begin(t.Context(), b.Engine, open(order("k")), 30)
			s.Wait()
			running := append(s.of(reprise.Claimed), s.of(reprise.Unprotected)...)
			if len(running) > 1 {
				t.Errorf("%d attempts of one operation run at once", len(running))
			}
			for _, a := range running {
				_ = a.Attempt.Release()
			}
		})
	}
}

func TestDeadlineIsOnTimeInTheShortestLease(t *testing.T) {
	inTime(t, func(t *testing.T) {
		b := setup(t, reprise.Config{Lease: time.Second})
		unrenewed(b)
		a, start := b.claim(t, order("k")), time.Now()
		<-a.Context().Done()
		if took := time.Since(start); took != 750*time.Millisecond {
			t.Errorf("cancelled after %v, want 750ms", took)
		}
		release(t, a)
	})
}
