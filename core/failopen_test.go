package reprise_test

import (
	"context"
	"errors"
	"strconv"
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
	b.store.onClaim = func(context.Context, store.ClaimRequest) (store.ClaimResult, error) {
		claims.Add(1)
		return store.ClaimResult{}, err
	}
	return claims
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
				if !a.Unprotected() || a.Atomic() || a.View().Number() != 0 {
					t.Error("not unprotected")
				}
				b.want(t, changed(open(order("k"))), reprise.Mismatch)
				b.want(t, order("k"), reprise.InProgress) // also of a policy that does not fail open
				time.Sleep(2 * lease)
				wantCause(t, a.Context(), nil)
				b.want(t, open(order("k")), reprise.InProgress)
				if v, ok := reprise.AttemptFrom(a.Context()); !ok || v.Key("call") == "" {
					t.Error("the handler has no attempt")
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
			if n := b.events.count("unprotected"); n != 3 {
				t.Errorf("%d unprotected attempts reported, want 3", n)
			}
			b.store.heal()
			time.Sleep(2 * time.Second)
		})
	}
}

// Those that shared a claim of a policy that fails closed are on their own when it fails,
// but still exclude each other.
func TestOfUnprotectedDuplicatesOneRunsAfterASharedClaimFailed(t *testing.T) {
	inTime(t, func(t *testing.T) {
		b := setup(t, reprise.Config{})
		b.store.onClaim = func(context.Context, store.ClaimRequest) (store.ClaimResult, error) {
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

// All have one deadline, so those that joined the claim may give up just before its
// answer.
func TestOfUnprotectedDuplicatesOneRunsOverAStoreThatHangs(t *testing.T) {
	inTime(t, func(t *testing.T) {
		b := setup(t, reprise.Config{})
		b.store.onClaim = func(ctx context.Context, _ store.ClaimRequest) (store.ClaimResult, error) {
			<-ctx.Done()
			return store.ClaimResult{}, store.ErrUnknown
		}
		var s answers
		s.begin(t.Context(), b.Engine, open(order("k")), 50)
		s.Wait()
		s.want(t, reprise.InProgress, 49)
		a := s.want(t, reprise.Unprotected, 1)[0].Attempt
		b.want(t, open(order("k")), reprise.InProgress)
		release(t, a)
		b.store.heal()
	})
}

// A definite failure was repeated for the whole budget, by every request.
func TestStoreThatIsAwayIsAskedAboutOnceASecond(t *testing.T) {
	for name, c := range map[string]struct {
		fail func(ctx context.Context) error
		most time.Duration // of the requests that ask
	}{
		"refusing connections": {func(context.Context) error { return store.ErrUnavailable }, 0},
		"hanging":              {func(ctx context.Context) error { <-ctx.Done(); return store.ErrUnknown }, budget},
	} {
		inTimeNamed(t, name, func(t *testing.T) {
			b := setup(t, reprise.Config{})
			var claims atomic.Int64
			b.store.onClaim = func(ctx context.Context, _ store.ClaimRequest) (store.ClaimResult, error) {
				claims.Add(1)
				return store.ClaimResult{}, c.fail(ctx)
			}
			b.store.onRelease = func(context.Context, store.ID, store.Owner) error { return store.ErrUnavailable }
			asked := 0
			for i := range 1000 {
				start, before := time.Now(), claims.Load()
				a := b.unprotected(t, order(strconv.Itoa(i)))
				took := time.Since(start)
				switch {
				case claims.Load() > before:
					asked++
					if took > c.most {
						t.Fatalf("request %d took %v, want %v at most", i, took, c.most)
					}
				case took > 0:
					t.Fatalf("request %d took %v without asking the store", i, took)
				}
				release(t, a)
				time.Sleep(10 * time.Millisecond)
			}
			if asked < 5 || asked > 14 || claims.Load() != int64(asked) {
				t.Errorf("%d requests asked the store, %d times, want about one each second of 10", asked, claims.Load())
			}
			b.store.heal()
			time.Sleep(2 * time.Second)
			a := b.claim(t, open(order("back")))
			if a.Unprotected() {
				t.Error("unprotected, and the store is back")
			}
			complete(t, a, "answer", reprise.EndRecorded)
			b.want(t, open(order("back")), reprise.Replayed)
		})
	}
}

func TestFailOpenOpensForUnreachableStoresOnly(t *testing.T) {
	for _, err := range []error{store.ErrFull, store.ErrMisconfigured, store.ErrCorrupt, store.ErrNotReplicated, store.ErrClosed} {
		inTimeNamed(t, err.Error(), func(t *testing.T) {
			b := setup(t, reprise.Config{})
			away(b, err)
			_, got := b.Begin(t.Context(), open(order("k")))
			wantError(t, "Begin", got, err)
			if b.Stats().Outcomes[reprise.Unprotected] != 0 {
				t.Error("counted as unprotected")
			}
		})
	}
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

// A claim is tried four times within its budget, 10, 40 and 160 ms apart, and once where
// to repeat it is useless. A policy that fails open does not repeat a definite failure:
// it runs.
func TestTriesOfAClaim(t *testing.T) {
	for name, c := range map[string]struct {
		err   error
		open  bool
		tries int64
	}{
		"unavailable":          {store.ErrUnavailable, false, 4},
		"unavailable, open":    {store.ErrUnavailable, true, 1},
		"unknown":              {store.ErrUnknown, false, 4},
		"unknown, open":        {store.ErrUnknown, true, 4},
		"not replicated":       {store.ErrNotReplicated, false, 4},
		"not replicated, open": {store.ErrNotReplicated, true, 4},
		"full":                 {store.ErrFull, false, 1},
		"misconfigured, open":  {store.ErrMisconfigured, true, 1},
		"corrupt":              {store.ErrCorrupt, false, 1},
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
			b.store.heal()
		})
	}
}

// All requests use a recovered store again, at once.
func TestStoreThatIsBackIsAsked(t *testing.T) {
	inTime(t, func(t *testing.T) {
		b := setup(t, reprise.Config{})
		claims := away(b, store.ErrUnavailable)
		release(t, b.unprotected(t, order("1")))
		for _, key := range []string{"2", "3"} {
			if release(t, b.unprotected(t, order(key))); claims.Load() != 1 {
				t.Errorf("%d claims of a store that is away", claims.Load())
			}
		}
		_, err := b.Begin(t.Context(), order("closed")) // which asks in any case, and does not end the outage
		wantError(t, "fail closed", err, store.ErrUnavailable)
		before := claims.Load()
		if release(t, b.unprotected(t, order("4"))); claims.Load() != before {
			t.Errorf("%d claims more of a store that is away", claims.Load()-before)
		}
		time.Sleep(2 * time.Second)
		b.store.heal()
		for _, key := range []string{"5", "6"} {
			a := b.claim(t, open(order(key)))
			if a.Unprotected() {
				t.Errorf("%s runs unprotected over a store that is back", key)
			}
			release(t, a)
		}
	})
}
