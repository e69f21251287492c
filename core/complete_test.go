package reprise_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/store"
)

func TestCompletedResponseIsReplayed(t *testing.T) {
	inTime(t, func(t *testing.T) {
		b := setup(t, reprise.Config{})
		op := order("k")
		a := b.claim(t, op)
		b.want(t, op, reprise.InProgress)
		changed := op
		changed.Fingerprint[0]++
		b.want(t, changed, reprise.Mismatch)
		payload := []byte("answer")
		if end, err := a.Complete(reprise.Completion{Payload: payload}); err != nil || end.End != reprise.EndRecorded {
			t.Fatal(end, err)
		}
		copy(payload, "reused")
		for range 2 {
			if got := b.want(t, op, reprise.Replayed).Payload; string(got) != "answer" {
				t.Fatalf("replayed %q", got)
			}
		}
		b.want(t, changed, reprise.Mismatch)
		time.Sleep(retention)
		release(t, b.claim(t, op))
		b.events.want(t, "claimed", "in-progress", "mismatch", "completed",
			"replayed", "replayed", "mismatch", "claimed", "released")
	})
}

// overtake lets the lease of b's attempt on op lapse, as if its process had been paused.
func overtake(t *testing.T, b *bench, op reprise.Operation) *reprise.Attempt {
	t.Helper()
	if b.store.onRenew == nil {
		b.store.onRenew = func(context.Context, []store.RenewRequest) ([]store.RenewStatus, error) {
			return nil, store.ErrUnavailable
		}
	}
	a := b.claim(t, op)
	time.Sleep(lease)
	return a
}

func TestLostCompletion(t *testing.T) {
	for _, c := range []struct {
		name  string
		rival func(t *testing.T, other *bench, op reprise.Operation)
		want  reprise.AttemptEnd
		after string // the replay afterwards
	}{
		{"a rival completed", func(t *testing.T, other *bench, op reprise.Operation) {
			complete(t, other.claim(t, op), "rival's", reprise.EndRecorded)
		}, reprise.EndSuperseded, "rival's"},
		{"a rival runs", func(t *testing.T, other *bench, op reprise.Operation) {
			a := other.claim(t, op)
			time.AfterFunc(time.Second, func() { _, _ = a.Complete(reprise.Completion{Payload: []byte("rival's")}) })
		}, reprise.EndContested, "rival's"},
		{"nobody", func(*testing.T, *bench, reprise.Operation) {}, reprise.EndRecorded, "mine"},
		{"a rival released", func(t *testing.T, other *bench, op reprise.Operation) {
			release(t, other.claim(t, op)) // so the record itself is gone, and is claimed anew
		}, reprise.EndRecorded, "mine"},
	} {
		inTimeNamed(t, c.name, func(t *testing.T) {
			b := setup(t, reprise.Config{})
			other := setupOver(t, b.store.Store, reprise.Config{})
			op := order("k")
			a := overtake(t, b, op)
			c.rival(t, other, op)
			end := complete(t, a, "mine", c.want)
			if c.want == reprise.EndSuperseded && string(end.Payload) != c.after {
				t.Errorf("the answer to send is %q", end.Payload)
			}
			time.Sleep(2 * time.Second)
			if got := b.want(t, op, reprise.Replayed).Payload; string(got) != c.after {
				t.Errorf("replayed %q, want %q", got, c.after)
			}
			b.events.wantCount(t, "lease-lost", 1)
		})
	}
}

// The store lost its data, and is down when the record must be made anew.
func TestLostRecordIsCompletedInTheBackground(t *testing.T) {
	inTime(t, func(t *testing.T) {
		b := setup(t, reprise.Config{})
		replaced := memstore.New()
		var calls atomic.Int64
		b.store.onComplete = func(ctx context.Context, r store.CompleteRequest) error {
			if n := calls.Add(1); n > 1 && n < 20 {
				return store.ErrUnavailable
			}
			return replaced.Complete(ctx, r)
		}
		var claims atomic.Int64
		b.store.onClaim = func(ctx context.Context, r store.ClaimRequest) (store.ClaimResult, error) {
			if claims.Add(1) == 1 {
				return b.store.Store.Claim(ctx, r)
			}
			return replaced.Claim(ctx, r)
		}
		complete(t, b.claim(t, order("k")), "answer", reprise.EndUnrecorded)
		time.Sleep(time.Minute)
		if got := b.want(t, order("k"), reprise.Replayed).Payload; string(got) != "answer" {
			t.Errorf("recorded %q", got)
		}
	})
}

func TestReleaseThatIsOfNoUseToRepeatLapses(t *testing.T) {
	inTime(t, func(t *testing.T) {
		b := setup(t, reprise.Config{})
		var calls owners
		b.store.onRelease = func(_ context.Context, _ store.ID, o store.Owner) error {
			calls.add(o)
			return store.ErrCorrupt
		}
		wantError(t, "Release", b.claim(t, order("k")).Release(), store.ErrCorrupt)
		time.Sleep(lease)
		calls.sameOwner(t, 1)
		b.store.heal()
		a := b.claim(t, order("k"))
		if a.View().Number() != 2 {
			t.Errorf("attempt %d after a lapse, want 2", a.View().Number())
		}
		release(t, a)
	})
}
