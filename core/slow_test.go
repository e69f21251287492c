package reprise_test

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/store"
)

// slowRenewals answers every renewal, after a while.
type slowRenewals struct {
	*memstore.Store

	takes time.Duration
}

func (s *slowRenewals) Renew(ctx context.Context, rs []store.RenewRequest) ([]store.RenewStatus, error) {
	defer time.Sleep(s.takes)
	return s.Store.Renew(ctx, rs)
}

// An attempt that falls due while a batch is out goes with the next batch: renewals that
// succeed lose no lease, however slow the store is.
func TestSlowRenewalsLoseNoLease(t *testing.T) {
	t.Parallel()
	const attempts = 30
	for _, takes := range []time.Duration{700 * time.Millisecond, 1200 * time.Millisecond, 2700 * time.Millisecond} {
		t.Run(takes.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var lost atomic.Int64
				observer := reprise.ObserverFunc(func(_ context.Context, e reprise.Event) {
					if e.Name() == "lease-lost" {
						lost.Add(1)
					}
				})
				engine := must(reprise.New(&slowRenewals{memstore.New(), takes}, reprise.Config{Observer: observer}))
				var running []*reprise.Attempt
				for i := range attempts {
					r, err := engine.Begin(t.Context(), reprise.Operation{Scope: "s", Key: strconv.Itoa(i)})
					if err != nil || r.Attempt == nil {
						t.Fatalf("%+v, %v", r, err)
					}
					running = append(running, r.Attempt)
					time.Sleep(333 * time.Millisecond)
				}
				time.Sleep(5 * time.Minute)
				if n := lost.Load(); n > 0 {
					t.Errorf("%d of %d leases are lost", n, attempts)
				}
				for _, a := range running {
					_ = a.Release()
				}
				if err := engine.Close(t.Context()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// lateClaims answers its first claim late, and later ones when their callers' budgets are
// about to end.
type lateClaims struct {
	*memstore.Store

	claims atomic.Int64
}

func (s *lateClaims) Claim(ctx context.Context, r store.ClaimRequest) (store.ClaimResult, error) {
	if s.claims.Add(1) == 1 {
		time.Sleep(1500 * time.Millisecond)
		return store.ClaimResult{Outcome: store.InProgress}, nil
	}
	select {
	case <-ctx.Done():
		return store.ClaimResult{}, fmt.Errorf("%w: no answer", store.ErrUnknown)
	case <-time.After(time.Second):
		return s.Store.Claim(ctx, r)
	}
}

// One attempt of an operation runs in a process, also when one caller fails open while
// the claim of another is granted. Which of them enters first is the scheduler's choice,
// so the test repeats.
func TestFailingOpenNeverRunsBesideAGrantedClaim(t *testing.T) {
	t.Parallel()
	for range 100 {
		synctest.Test(t, func(t *testing.T) {
			engine := must(reprise.New(&lateClaims{Store: memstore.New()}, reprise.Config{}))
			var wg sync.WaitGroup
			var mu sync.Mutex
			var running []*reprise.Attempt
			begin := func() {
				wg.Go(func() {
					r, _ := engine.Begin(t.Context(), reprise.Operation{Scope: "s", Key: "k", FailOpen: true})
					if r.Attempt != nil {
						mu.Lock()
						defer mu.Unlock()
						running = append(running, r.Attempt)
					}
				})
			}
			begin()
			time.Sleep(10 * time.Millisecond)
			for range 3 {
				begin()
			}
			time.Sleep(1400 * time.Millisecond)
			for range 30 {
				begin()
			}
			wg.Wait()
			if len(running) > 1 {
				t.Errorf("%d attempts of one operation run at once", len(running))
			}
			for _, a := range running {
				_ = a.Release()
			}
			if err := engine.Close(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}
