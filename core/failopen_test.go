package reprise_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/store"
)

// unprotected begins op, whose store is away and which fails open.
func (b *bench) unprotected(t *testing.T, op reprise.Operation) *reprise.Attempt {
	t.Helper()
	return b.want(t, open(op), reprise.Unprotected).Attempt
}

func open(op reprise.Operation) reprise.Operation {
	op.FailOpen = true
	return op
}

// away makes the store fail with err, and counts the claims that it is asked for.
func away(b *bench, err error) (claims *atomic.Int64) {
	claims = new(atomic.Int64)
	b.store.OnClaim = func(context.Context, store.ClaimRequest) (store.ClaimResult, error) {
		claims.Add(1)
		return store.ClaimResult{}, err
	}
	return claims
}

// unrenewed makes the store renew no lease.
func unrenewed(b *bench) {
	b.store.OnRenew = func(context.Context, []store.RenewRequest) ([]store.RenewStatus, error) {
		return nil, store.ErrUnavailable
	}
}

// wantNoRun fails the test unless a call ended as wanted, without an attempt.
func wantNoRun(t *testing.T, res reprise.Result, err error, want reprise.Outcome) {
	t.Helper()
	if res.Outcome != want {
		t.Errorf("answered %v (%v), want %v", res.Outcome, err, want)
	}
	if res.Attempt != nil {
		_ = res.Attempt.Release()
	}
}

func TestOfUnprotectedDuplicatesOneRuns(t *testing.T) {
	for _, err := range []error{store.ErrUnavailable, store.ErrUnknown} {
		inTimeNamed(t, err.Error(), func(t *testing.T) {
			b := setup(t, reprise.Config{})
			away(b, err)
			for round := range 3 {
				var s answers
				s.begin(t.Context(), b.Engine, open(order("k")), 50)
				s.Wait()
				a := s.want(t, reprise.Unprotected, 1)[0].Attempt
				s.want(t, reprise.InProgress, 49)
				if !a.Unprotected() || a.Transactional() || a.View().Number() != 0 {
					t.Error("not unprotected")
				}
				b.want(t, changed(open(order("k"))), reprise.Mismatch)
				b.want(t, order("k"), reprise.InProgress) // also of a policy that does not fail open
				time.Sleep(2 * lease)
				wantCause(t, a.Context(), nil)
				b.want(t, open(order("k")), reprise.InProgress)
				v, ok := reprise.AttemptFrom(a.Context())
				if key, err := v.Key("call"); !ok || key == "" || err != nil {
					t.Errorf("the handler has no attempt, or no key: %v", err)
				}
				if round%2 == 0 {
					release(t, a)
				} else {
					complete(t, a, "answer", reprise.EndUnrecorded)
				}
				wantCause(t, a.Context(), context.Canceled)
			}
			if n := b.Stats().Outcomes[reprise.Unprotected]; n != 3 {
				t.Errorf("%d unprotected attempts counted, want 3", n)
			}
			b.events.wantCount(t, "unprotected", 3)
			b.store.Heal()
			time.Sleep(2 * time.Second)
		})
	}
}

// A store that gives an answer outside its contract, or panics, was reached: it ran every
// request unprotected. One such try among others that fail is enough.
func TestFailOpenDoesNotOpenForAStoreThatWasReached(t *testing.T) {
	for name, claim := range map[string]func(store.ClaimRequest) (store.ClaimResult, error){
		"no outcome":           func(store.ClaimRequest) (store.ClaimResult, error) { return store.ClaimResult{}, nil },
		"an outcome of others": func(store.ClaimRequest) (store.ClaimResult, error) { return store.ClaimResult{Outcome: 99}, nil },
		"a panic":              func(store.ClaimRequest) (store.ClaimResult, error) { panic("a bug in a decorator") },
		"a claim without a lease": func(store.ClaimRequest) (store.ClaimResult, error) {
			return store.ClaimResult{Outcome: store.Claimed, Attempt: 1, Fence: 1}, nil
		},
	} {
		for _, firstTry := range []bool{false, true} {
			inTimeNamed(t, fmt.Sprint(name, ", at first only ", firstTry), func(t *testing.T) {
				b := setup(t, reprise.Config{})
				var tries atomic.Int64
				b.store.OnClaim = func(_ context.Context, r store.ClaimRequest) (store.ClaimResult, error) {
					if tries.Add(1) > 1 && firstTry {
						return store.ClaimResult{}, store.ErrUnavailable
					}
					return claim(r)
				}
				unrenewed(b)
				res, err := b.Begin(t.Context(), open(order("k")))
				wantNoRun(t, res, err, reprise.Unavailable)
				if tries.Load() != 4 {
					t.Errorf("asked %d times, want that it is asked again", tries.Load())
				}
				if !firstTry {
					wantError(t, "Begin", err, store.ErrUnknown)
				}
				b.store.Heal()
				time.Sleep(budget)
			})
		}
	}
}

// A claim is tried four times within its budget, 10, 40 and 160 ms apart, and once where
// to repeat it is useless. A policy that fails open runs after the last try.
func TestTriesOfAClaim(t *testing.T) {
	for name, c := range map[string]struct {
		err   error
		open  bool
		tries int64
	}{
		"unavailable":          {store.ErrUnavailable, false, 4},
		"unavailable, open":    {store.ErrUnavailable, true, 4},
		"busy":                 {store.ErrBusy, false, 4},
		"busy, open":           {store.ErrBusy, true, 4},
		"unknown":              {store.ErrUnknown, false, 4},
		"unknown, open":        {store.ErrUnknown, true, 4},
		"not replicated":       {store.ErrNotReplicated, false, 4},
		"not replicated, open": {store.ErrNotReplicated, true, 4},
		"unnamed":              {errors.New("away"), false, 4},
		"full":                 {store.ErrFull, false, 1},
		"misconfigured, open":  {store.ErrMisconfigured, true, 1},
		"corrupt":              {store.ErrCorrupt, false, 1},
		"full, open":           {store.ErrFull, true, 1},
		"invalid":              {store.ErrInvalid, false, 1},
		"corrupt, open":        {store.ErrCorrupt, true, 1},
		"closed, open":         {store.ErrClosed, true, 1},
	} {
		inTimeNamed(t, name, func(t *testing.T) {
			b := setup(t, reprise.Config{})
			claims := away(b, c.err)
			op := order("k")
			op.FailOpen = c.open
			began := time.Now()
			res, err := b.Begin(t.Context(), op)
			took := time.Since(began)
			if claims.Load() != c.tries {
				t.Errorf("%d tries, want %d", claims.Load(), c.tries)
			}
			pauses := 210 * time.Millisecond // and a quarter more or less
			if c.tries == 1 {
				pauses = 0
			}
			if took < pauses*3/4 || took > pauses*5/4 {
				t.Errorf("it took %v, want about %v", took, pauses)
			}
			switch runs := res.Attempt != nil; {
			case runs != (c.open && (errors.Is(c.err, store.ErrUnavailable) || errors.Is(c.err, store.ErrUnknown))):
				t.Errorf("runs: %t, %v", runs, err)
			case runs:
				release(t, res.Attempt)
			default:
				wantError(t, "the claim", err, c.err)
			}
			b.store.Heal()
		})
	}
}

// A call whose budget ends while another still asks does not know what that one finds.
func TestFailOpenDoesNotOpenBesideASharedClaimWithoutAnAnswer(t *testing.T) {
	inTime(t, func(t *testing.T) {
		b := setup(t, reprise.Config{})
		b.store.OnClaim = func(context.Context, store.ClaimRequest) (store.ClaimResult, error) {
			time.Sleep(2 * budget) // a store that ignores its context
			return store.ClaimResult{}, store.ErrBusy
		}
		var s answers
		s.begin(t.Context(), b.Engine, open(order("k")), 10)
		s.Wait()
		for _, got := range s.list {
			if got.Outcome != reprise.Unavailable {
				wantNoRun(t, got.Result, got.err, reprise.InProgress)
			}
		}
		s.want(t, reprise.InProgress, 9)
		b.store.Heal()
	})
}

// The lease of the attempt is over, and its handler still runs, or its result waits in
// the background.
func TestFailOpenDoesNotOpenBesideAnAttemptThatHasNotEnded(t *testing.T) {
	for name, end := range map[string]func(t *testing.T, a *reprise.Attempt){
		"running":                     func(*testing.T, *reprise.Attempt) {},
		"completed in the background": func(t *testing.T, a *reprise.Attempt) { complete(t, a, "answer", reprise.EndUnrecorded) },
		"released in the background": func(t *testing.T, a *reprise.Attempt) {
			wantError(t, "Release", a.Release(), store.ErrUnavailable)
		},
	} {
		inTimeNamed(t, name, func(t *testing.T) {
			b := setup(t, reprise.Config{})
			a := b.claim(t, open(order("k")))
			away(b, store.ErrUnavailable)
			unrenewed(b)
			b.store.OnComplete = func(context.Context, store.CompleteRequest) error { return store.ErrUnavailable }
			b.store.OnRelease = func(context.Context, store.ID, store.Owner) error { return store.ErrUnavailable }
			end(t, a)
			for range 3 {
				res, err := b.Begin(t.Context(), open(order("k")))
				wantNoRun(t, res, err, reprise.InProgress)
				res, err = b.Begin(t.Context(), changed(open(order("k"))))
				wantNoRun(t, res, err, reprise.Mismatch)
				time.Sleep(lease) // past its local deadline
			}
			b.store.Heal()
			time.Sleep(2 * time.Second)
			if name == "running" {
				release(t, a)
			}
		})
	}
}

// The claim that the second call joins finds the attempt of another process, and is too
// old for it; its own claim then fails.
func TestFailOpenDoesNotOpenAfterASharedClaimSawTheKey(t *testing.T) {
	for name, leading := range map[string]func(reprise.Operation) reprise.Operation{
		"in progress": open, "of another request": changed,
	} {
		inTimeNamed(t, name, func(t *testing.T) {
			b := setup(t, reprise.Config{})
			held := setupOver(t, b.store.Store, reprise.Config{}).claim(t, order("k"))
			var claims atomic.Int64
			b.store.OnClaim = func(ctx context.Context, r store.ClaimRequest) (store.ClaimResult, error) {
				time.Sleep(100 * time.Millisecond)
				if claims.Add(1) > 1 {
					return store.ClaimResult{}, store.ErrUnavailable
				}
				return b.store.Store.Claim(ctx, r)
			}
			var first, second answers
			first.begin(t.Context(), b.Engine, leading(order("k")), 1)
			second.begin(t.Context(), b.Engine, open(order("k")), 1)
			first.Wait()
			second.Wait()
			wantNoRun(t, second.list[0].Result, second.list[0].err, reprise.InProgress)
			release(t, held)
		})
	}
}

// Those that shared a claim of a policy that fails closed are on their own when it fails,
// but still exclude each other.
func TestOfUnprotectedDuplicatesOneRunsAfterASharedClaimFailed(t *testing.T) {
	inTime(t, func(t *testing.T) {
		b := setup(t, reprise.Config{})
		b.store.OnClaim = func(context.Context, store.ClaimRequest) (store.ClaimResult, error) {
			time.Sleep(300 * time.Millisecond)
			return store.ClaimResult{}, store.ErrUnavailable
		}
		var closed, opened answers
		closed.begin(t.Context(), b.Engine, order("k"), 1)
		opened.begin(t.Context(), b.Engine, open(order("k")), 20)
		closed.Wait()
		opened.Wait()
		closed.want(t, reprise.Unavailable, 1)
		opened.want(t, reprise.InProgress, 19)
		release(t, opened.want(t, reprise.Unprotected, 1)[0].Attempt)
	})
}

func TestUnprotectedAttemptIsBoundedAsAnyOther(t *testing.T) {
	inTime(t, func(t *testing.T) {
		b := setup(t, reprise.Config{MaxRun: time.Minute})
		away(b, store.ErrUnavailable)
		a := b.unprotected(t, order("k"))
		time.Sleep(time.Minute)
		wantCause(t, a.Context(), reprise.ErrRunTooLong)
		if err := closeWithin(t, b.Engine, time.Second); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Close: %v, want it to wait", err)
		}
		release(t, a)
	})
}
