package reprise_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/store"
)

// The store executes a claim that its caller gave up, at any moment of the next claim
// budget.
func TestClaimThatExecutesLateFreesItsKey(t *testing.T) {
	for _, late := range []time.Duration{0, time.Millisecond, budget / 2, budget - time.Millisecond} {
		inTimeNamed(t, late.String(), func(t *testing.T) {
			b := setup(t, reprise.Config{})
			var executions sync.WaitGroup
			b.store.OnClaim = func(ctx context.Context, r store.ClaimRequest) (store.ClaimResult, error) {
				<-ctx.Done()
				executions.Go(func() {
					time.Sleep(late)
					_, _ = b.store.Store.Claim(context.WithoutCancel(ctx), r)
				})
				return store.ClaimResult{}, fmt.Errorf("%w: gave up", store.ErrUnknown)
			}
			_, err := b.Begin(t.Context(), order("k"))
			wantError(t, "Begin", err, store.ErrUnknown)
			executions.Wait()
			b.store.Heal()
			time.Sleep(budget + time.Second - late)
			release(t, b.claim(t, order("k")))
		})
	}
}

// A waiter asks again after a claim that it gave up is being released. The new claim must
// not be released with it.
func TestWaiterKeepsItsClaimWhileAnEarlierOneOfItIsReleased(t *testing.T) {
	inTime(t, func(t *testing.T) {
		b := setup(t, reprise.Config{})
		other := setupOver(t, b.store.Store, reprise.Config{})
		held := other.claim(t, order("k"))
		var claims atomic.Int64
		b.store.OnClaim = func(ctx context.Context, r store.ClaimRequest) (store.ClaimResult, error) {
			if claims.Add(1) == 1 {
				return store.ClaimResult{}, store.ErrUnknown
			}
			return b.store.Store.Claim(ctx, r)
		}
		time.AfterFunc(budget/2, func() { _ = held.Release() })
		a := b.claim(t, wait(order("k"), time.Minute))
		time.Sleep(2 * budget) // the second release comes in here
		other.want(t, order("k"), reprise.InProgress)
		complete(t, a, "answer", reprise.EndRecorded)
	})
}

// The first try is on its way while the second is granted, run and released.
func TestTryThatExecutesAfterTheReleaseFreesItsKey(t *testing.T) {
	inTime(t, func(t *testing.T) {
		b := setup(t, reprise.Config{})
		var calls atomic.Int64
		var late sync.WaitGroup
		b.store.OnClaim = func(ctx context.Context, r store.ClaimRequest) (store.ClaimResult, error) {
			if calls.Add(1) == 1 {
				late.Go(func() {
					time.Sleep(time.Second)
					_, _ = b.store.Store.Claim(context.WithoutCancel(ctx), r)
				})
				return store.ClaimResult{}, store.ErrUnknown
			}
			return b.store.Store.Claim(ctx, r)
		}
		op := order("k")
		op.Preset = reprise.AtMostOnce // which would never get over the orphan
		release(t, b.claim(t, op))
		late.Wait()
		time.Sleep(2 * budget)
		release(t, b.claim(t, op))
	})
}

// grantedWith makes the store return a given rest of the lease with the claims of b.
func grantedWith(b *bench, left time.Duration) {
	b.store.OnClaim = func(ctx context.Context, r store.ClaimRequest) (store.ClaimResult, error) {
		if left > 0 {
			r.Lease = left
		}
		res, err := b.store.Store.Claim(ctx, r)
		res.Remaining = left
		return res, err
	}
}

func TestOwnLapsedClaimIsRenewedBeforeItRuns(t *testing.T) {
	for _, left := range []time.Duration{0, -time.Minute, 250 * time.Millisecond} {
		inTimeNamed(t, left.String(), func(t *testing.T) {
			b := setup(t, reprise.Config{})
			grantedWith(b, left)
			var renewals atomic.Int64
			b.store.OnRenew = func(ctx context.Context, rs []store.RenewRequest) ([]store.RenewStatus, error) {
				renewals.Add(1)
				return b.store.Store.Renew(ctx, rs)
			}
			a := b.claim(t, order("k"))
			if n := renewals.Load(); n != 1 {
				t.Fatalf("%d renewals before it runs, want 1", n)
			}
			time.Sleep(10 * lease)
			wantCause(t, a.Context(), nil)
			complete(t, a, "answer", reprise.EndRecorded)
		})
	}
}

func TestOwnLapsedClaimThatIsNotRenewedDoesNotRun(t *testing.T) {
	for name, renew := range map[string]func() ([]store.RenewStatus, error){
		"lost":        func() ([]store.RenewStatus, error) { return []store.RenewStatus{store.RenewLost}, nil },
		"busy":        func() ([]store.RenewStatus, error) { return []store.RenewStatus{store.RenewBusy}, nil },
		"unavailable": func() ([]store.RenewStatus, error) { return nil, store.ErrUnavailable },
		"too few":     func() ([]store.RenewStatus, error) { return nil, nil },
	} {
		inTimeNamed(t, name, func(t *testing.T) {
			b := setup(t, reprise.Config{})
			grantedWith(b, 0)
			b.store.OnRenew = func(context.Context, []store.RenewRequest) ([]store.RenewStatus, error) { return renew() }
			_, err := b.Begin(t.Context(), order("k"))
			wantError(t, "Begin", err, store.ErrUnknown)
			time.Sleep(2 * budget)
			b.store.Heal() // the claim was written, so it has to be gone now
			release(t, b.claim(t, order("k")))
		})
	}
}

func TestStorePanicIsAnUnknownOutcome(t *testing.T) {
	inTimeNamed(t, "before it runs", func(t *testing.T) {
		b := setup(t, reprise.Config{})
		bug := func() error { panic("a bug in the store") }
		b.store.OnClaim = func(context.Context, store.ClaimRequest) (store.ClaimResult, error) {
			return store.ClaimResult{}, bug()
		}
		_, err := b.Begin(t.Context(), order("k"))
		wantError(t, "Begin", err, store.ErrUnknown)
		if !strings.Contains(err.Error(), "a bug in the store") {
			t.Errorf("the error does not mention the panic: %v", err)
		}
	})
	inTimeNamed(t, "while it runs", func(t *testing.T) {
		b := setup(t, reprise.Config{})
		bug := func() error { panic("a bug in the store") }
		b.store.OnRenew = func(context.Context, []store.RenewRequest) ([]store.RenewStatus, error) { return nil, bug() }
		b.store.OnComplete = func(context.Context, store.CompleteRequest) error { return bug() }
		b.store.OnRelease = func(context.Context, store.ID, store.Owner) error { return bug() }
		kept, released := b.claim(t, order("kept")), b.claim(t, order("released"))
		time.Sleep(lease)
		wantCause(t, kept.Context(), store.ErrLeaseLost)
		complete(t, kept, "answer", reprise.EndUnrecorded)
		wantError(t, "Release", released.Release(), store.ErrUnknown)
		b.store.Heal()
		time.Sleep(2 * time.Second)
		b.want(t, order("kept"), reprise.Replayed)
		release(t, b.claim(t, order("released")))
	})
}

func changed(op reprise.Operation) reprise.Operation {
	op.Fingerprint[0]++
	return op
}

// A storm of 200 duplicates at one process cost 178 claims.
func TestSimultaneousDuplicatesShareOneClaim(t *testing.T) {
	inTime(t, func(t *testing.T) {
		const n = 200
		b := setup(t, reprise.Config{})
		var claims atomic.Int64
		b.store.OnClaim = func(ctx context.Context, r store.ClaimRequest) (store.ClaimResult, error) {
			claims.Add(1)
			res, err := b.store.Store.Claim(ctx, r)
			time.Sleep(100 * time.Millisecond) // so that duplicates arrive meanwhile
			return res, err
		}
		var s, others answers
		s.begin(t.Context(), b.Engine, order("k"), n)
		others.begin(t.Context(), b.Engine, changed(order("k")), n)
		s.Wait()
		others.Wait()
		first := s.want(t, reprise.Claimed, 1)[0]
		s.want(t, reprise.InProgress, n-1)
		others.want(t, reprise.Mismatch, n)
		if claims.Load() != 1 {
			t.Errorf("%d claims, want 1 for all", claims.Load())
		}
		complete(t, first.Attempt, "answer", reprise.EndRecorded)

		var replays answers
		claims.Store(0)
		replays.begin(t.Context(), b.Engine, order("k"), n)
		replays.Wait()
		for _, got := range replays.want(t, reprise.Replayed, n) {
			if string(got.Payload) != "answer" {
				t.Fatalf("replayed %q", got.Payload)
			}
		}
		if claims.Load() != 1 {
			t.Errorf("%d claims for %d replays at once", claims.Load(), n)
		}
		if got := b.events.count("replayed"); got != n {
			t.Errorf("%d replays reported, want %d: each is answered", got, n)
		}
	})
}

func TestStoreThatEndsTheGoroutineLeavesEachOnItsOwn(t *testing.T) {
	inTime(t, func(t *testing.T) {
		b := setup(t, reprise.Config{})
		var claims atomic.Int64
		b.store.OnClaim = func(ctx context.Context, r store.ClaimRequest) (store.ClaimResult, error) {
			time.Sleep(100 * time.Millisecond)
			if claims.Add(1) == 1 {
				runtime.Goexit()
			}
			return b.store.Store.Claim(ctx, r)
		}
		var s answers
		s.begin(t.Context(), b.Engine, order("k"), 3)
		s.Wait()
		s.want(t, reprise.InProgress, 1)
		release(t, s.want(t, reprise.Claimed, 1)[0].Attempt)
		if err := closeWithin(t, b.Engine, time.Second); err != nil {
			t.Error(err)
		}
		if got := b.Stats().Outcomes; got[reprise.Unavailable] != 1 || got[reprise.Claimed] != 1 || got[reprise.InProgress] != 1 {
			t.Errorf("three requests are counted as %v", got)
		}
	})
}

// It would wait for itself until its patience ends.
func TestOperationInsideOfItselfIsInProgressAtOnce(t *testing.T) {
	for name, inside := range map[string]func(context.Context, *testing.T, *bench) context.Context{
		"at once": func(ctx context.Context, _ *testing.T, _ *bench) context.Context { return ctx },
		"inside of another operation": func(ctx context.Context, t *testing.T, b *bench) context.Context {
			res := must(b.Begin(ctx, order("other")))
			t.Cleanup(func() { release(t, res.Attempt) })
			return res.Attempt.Context()
		},
	} {
		inTimeNamed(t, name, func(t *testing.T) {
			b := setup(t, reprise.Config{})
			unrenewed(b)
			op := wait(order("k"), time.Hour)
			a := b.claim(t, op)
			ctx := inside(a.Context(), t, b)
			for range 2 {
				start := time.Now()
				res, err := b.Begin(ctx, op)
				if took := time.Since(start); took > 0 || err != nil || res.Outcome != reprise.InProgress {
					t.Errorf("%v, %v after %v, want in-progress at once", res.Outcome, err, took)
				}
				time.Sleep(2 * lease) // its lease is lost
			}
			if res, err := b.Begin(ctx, changed(op)); err != nil || res.Outcome != reprise.Mismatch {
				t.Errorf("another request with its key: %v, %v, want mismatch", res.Outcome, err)
			}
			complete(t, a, "answer", reprise.EndRecorded)
		})
	}
}

// A store divides its room among scopes: each claim says which one it is of.
func TestClaimSaysItsScope(t *testing.T) {
	t.Parallel()
	b := setup(t, reprise.Config{})
	var scopes []uint64
	b.store.OnClaim = func(ctx context.Context, r store.ClaimRequest) (store.ClaimResult, error) {
		scopes = append(scopes, r.Scope)
		return b.store.Store.Claim(ctx, r)
	}
	for _, of := range [][2]string{{"tenant", "a"}, {"tenant", "b"}, {"other", "a"}} {
		release(t, b.claim(t, reprise.Operation{Scope: of[0], Key: of[1]}))
	}
	if scopes[0] == 0 || scopes[0] != scopes[1] || scopes[0] == scopes[2] {
		t.Errorf("the scopes are %v, want two that are equal, and another one", scopes)
	}
}
