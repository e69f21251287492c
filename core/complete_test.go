package reprise_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/store"
)

// overtake lets the lease of b's attempt on op lapse, as if its process had been paused.
func overtake(t *testing.T, b *bench, op reprise.Operation) *reprise.Attempt {
	t.Helper()
	if b.store.OnRenew == nil {
		unrenewed(b)
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

func TestReleaseThatIsOfNoUseToRepeatLapses(t *testing.T) {
	inTime(t, func(t *testing.T) {
		b := setup(t, reprise.Config{})
		var calls atomic.Int64
		b.store.OnRelease = func(context.Context, store.ID, store.Owner) error {
			calls.Add(1)
			return store.ErrCorrupt
		}
		wantError(t, "Release", b.claim(t, order("k")).Release(), store.ErrCorrupt)
		time.Sleep(lease)
		if n := calls.Load(); n != 1 {
			t.Errorf("%d calls, want 1", n)
		}
		b.store.Heal()
		a := b.claim(t, order("k"))
		if a.View().Number() != 2 {
			t.Errorf("attempt %d after a lapse, want 2", a.View().Number())
		}
		release(t, a)
	})
}

// of returns the only event of a kind.
func (s *events) of(t *testing.T, kind string) reprise.Event {
	t.Helper()
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	at := slices.IndexFunc(s.list, func(e reprise.Event) bool { return e.Name() == kind })
	if at < 0 {
		t.Fatalf("no %v", kind)
	}
	return s.list[at]
}

// A completion in the background that finds another owner in the record ends with the
// loss of the lease.
func TestBackgroundCompletionReportsALostLease(t *testing.T) {
	inTime(t, func(t *testing.T) {
		b := setup(t, reprise.Config{})
		var lost atomic.Bool
		b.store.OnComplete = func(context.Context, store.CompleteRequest) error {
			if lost.Load() {
				return store.ErrLeaseLost
			}
			return store.ErrUnavailable
		}
		complete(t, b.claim(t, order("k")), "answer", reprise.EndUnrecorded)
		lost.Store(true)
		time.Sleep(lease / 2)
		synctest.Wait()
		b.events.wantCount(t, "lease-lost", 1)
		b.events.wantCount(t, "dropped", 1)
		if last := b.events.last(); last.Name() != "dropped" || last.End != reprise.EndDropped {
			t.Errorf("the last event is %v", last.Name())
		}
	})
}

// A record that its caller cannot read counts as corrupt, and one that it can read as
// replayed: once, and not before it was read.
func TestUnreadablePayloadIsCorruptAndReported(t *testing.T) {
	for name, unreadable := range map[string]error{
		"read":    nil,
		"plain":   errors.New("not my format"),
		"corrupt": fmt.Errorf("%w: cut", store.ErrCorrupt),
	} {
		inTimeNamed(t, name, func(t *testing.T) {
			b := setup(t, reprise.Config{})
			complete(t, b.claim(t, order("k")), "answer", reprise.EndRecorded)
			op := order("k")
			op.Reads = true
			res := must(b.Begin(t.Context(), op))
			if n := b.Stats().Outcomes[reprise.Replayed]; res.Outcome != reprise.Replayed || n != 0 {
				t.Errorf("%v, counted %d times before it was read", res.Outcome, n)
			}
			payload, want := string(res.Payload), reprise.Replayed
			err := res.Read("note", unreadable)
			if unreadable == nil {
				if last := b.events.last(); err != nil || payload != "answer" || last.Annotation != "note" || last.ID == (store.ID{}) || last.Scope == "" {
					t.Errorf("%q, %v, reported as %+v", payload, err, last)
				}
			} else {
				want = reprise.Corrupt
				wantError(t, "Read", err, store.ErrCorrupt)
				wantError(t, "Read", err, unreadable)
			}
			if failed := b.events.count("store-error"); (failed == 1) != (unreadable != nil) || res.Outcome != want || b.Stats().Outcomes[want] != 1 {
				t.Errorf("%d failures reported, %v, counted as %v", failed, res.Outcome, b.Stats().Outcomes)
			}
			b.events.wantCounted(t, b.Stats())
		})
	}
}

func TestARefusalHasAnOutcomeThatExists(t *testing.T) {
	t.Parallel()
	b := setup(t, reprise.Config{})
	for outcome, want := range map[reprise.Outcome]reprise.Outcome{
		0:                  reprise.Failed,
		reprise.Replayed:   reprise.Replayed,
		reprise.Expired:    reprise.Expired,
		reprise.Failed + 1: reprise.Failed,
	} {
		before := b.Stats().Outcomes[want]
		b.Refuse(t.Context(), "", outcome, nil)
		if got := b.events.last().Outcome; got != want || b.Stats().Outcomes[want] != before+1 {
			t.Errorf("%d is reported as %v and counted %d times, want %v", outcome, got, b.Stats().Outcomes[want]-before, want)
		}
	}
}

// counted forwards the claims of b, and counts them.
func counted(b *bench) (claims *atomic.Int64) {
	claims = new(atomic.Int64)
	b.store.OnClaim = func(ctx context.Context, r store.ClaimRequest) (store.ClaimResult, error) {
		claims.Add(1)
		return b.store.Store.Claim(ctx, r)
	}
	return claims
}

// The store lost its data, and is down when the record must be made anew.
func TestLostRecordIsCompletedInTheBackground(t *testing.T) {
	inTime(t, func(t *testing.T) {
		b := setup(t, reprise.Config{})
		replaced := memstore.New()
		var calls atomic.Int64
		b.store.OnComplete = func(ctx context.Context, r store.CompleteRequest) error {
			if n := calls.Add(1); n > 1 && n < 20 {
				return store.ErrUnavailable
			}
			return replaced.Complete(ctx, r)
		}
		var claims atomic.Int64
		b.store.OnClaim = func(ctx context.Context, r store.ClaimRequest) (store.ClaimResult, error) {
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
