package reprise_test

import (
	"context"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/store"
)

// slowClaims lets claims take a while, so that duplicates arrive meanwhile, and counts
// them.
func slowClaims(b *bench) (claims *atomic.Int64) {
	claims = new(atomic.Int64)
	b.store.onClaim = func(ctx context.Context, r store.ClaimRequest) (store.ClaimResult, error) {
		claims.Add(1)
		res, err := b.store.Store.Claim(ctx, r)
		time.Sleep(100 * time.Millisecond)
		return res, err
	}
	return claims
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
		claims := slowClaims(b)
		var s, others answers
		s.begin(t.Context(), b.Engine, order("k"), n)
		others.begin(t.Context(), b.Engine, changed(order("k")), n)
		s.Wait()
		others.Wait()
		first := s.want(t, reprise.Claimed, 1)[0]
		s.want(t, reprise.InProgress, n-1)
		others.want(t, reprise.Mismatch, n)
		if claims.Load() != 1 || b.Stats().SharedClaims != 2*n-1 {
			t.Errorf("%d claims, %d shared, want 1 and the others", claims.Load(), b.Stats().SharedClaims)
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
		b.store.onClaim = func(ctx context.Context, r store.ClaimRequest) (store.ClaimResult, error) {
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
