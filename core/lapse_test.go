package reprise_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/store"
)

// After the local deadline the table of the process no longer has an attempt, even if its
// handler does not notice.
func TestHandlerThatIgnoresItsContextDoesNotBlockARival(t *testing.T) {
	inTime(t, func(t *testing.T) {
		b := setup(t, reprise.Config{})
		claims := 0
		b.store.onClaim = func(ctx context.Context, r store.ClaimRequest) (store.ClaimResult, error) {
			claims++
			return b.store.Store.Claim(ctx, r)
		}
		b.store.onRenew = func(context.Context, []store.RenewRequest) ([]store.RenewStatus, error) {
			return nil, store.ErrUnavailable
		}
		op := order("k")
		zombie := b.claim(t, op)
		time.Sleep(lease - margin - 1)
		b.want(t, op, reprise.InProgress)
		if claims != 1 {
			t.Fatalf("%d round trips while its lease is relied on, want 1", claims)
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		b.want(t, op, reprise.InProgress) // says the store, by its own clock
		if claims != 2 {
			t.Fatalf("%d round trips past the local deadline, want 2", claims)
		}
		time.Sleep(margin)
		second := b.claim(t, op)
		if second.View().Number() != 2 {
			t.Errorf("attempt %d, want 2", second.View().Number())
		}
		b.want(t, op, reprise.InProgress)
		if claims != 3 {
			t.Errorf("%d round trips, want 3: the table speaks for the second attempt", claims)
		}
		complete(t, zombie, "zombie's", reprise.EndContested)
		b.want(t, op, reprise.InProgress) // the end of the first does not end the second
		complete(t, second, "second's", reprise.EndRecorded)
		if got := b.want(t, op, reprise.Replayed).Payload; string(got) != "second's" {
			t.Errorf("replayed %q", got)
		}
	})
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
