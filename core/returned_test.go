package reprise_test

import (
	"context"
	"errors"
	"testing"
	"time"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/store"
)

// The mark may be written, or was, when the handler returns. Its client gets its
// response, since no attempt ran beside it, also where the rest takes longer than the
// lease.
func TestHandlerThatReturnsWhileItIsMarkedKeepsItsResponse(t *testing.T) {
	for name, c := range map[string]struct {
		executed bool
		err      error
		end      reprise.AttemptEnd
		retry    reprise.Outcome
	}{
		"marked":                     {true, nil, reprise.EndUnknown, reprise.Lapsed},
		"marked, and the reply lost": {true, store.ErrUnknown, reprise.EndUnknown, reprise.Lapsed},
		"not marked":                 {false, store.ErrUnavailable, reprise.EndRecorded, reprise.Replayed},
	} {
		inTimeNamed(t, name, func(t *testing.T) {
			b := setup(t, reprise.Config{MaxRun: maxRun})
			tries := 0
			b.store.onUnknown = func(ctx context.Context, r store.UnknownRequest) (err error) {
				tries++
				if c.executed {
					err = b.store.Store.Unknown(ctx, r)
				}
				time.Sleep(time.Second)
				return errors.Join(err, c.err)
			}
			a := outrun(t, b, order("k"))
			a.Returned()
			time.Sleep(10 * lease)
			b.store.heal()
			complete(t, a, "late", c.end)
			b.want(t, order("k"), c.retry)
			if tries != 1 || b.events.count("lease-lost") != 0 {
				t.Errorf("tried to mark it %d times, and observed %v", tries, b.events.names())
			}
		})
	}
}

// An operator forgot the marked record, and another attempt ran: that its record has
// lapsed too says nothing about the first one.
func TestHandlerThatReturnsAfterItsMarkWasForgottenIsContested(t *testing.T) {
	for name, lost := range map[string]error{"marked": nil, "marked, and the reply lost": store.ErrUnknown} {
		inTimeNamed(t, name, func(t *testing.T) {
			b := setup(t, reprise.Config{MaxRun: maxRun})
			b.store.onUnknown = func(ctx context.Context, r store.UnknownRequest) error {
				return errors.Join(b.store.Store.Unknown(ctx, r), lost)
			}
			a := outrun(t, b, order("k"))
			a.Returned()
			inspector, _ := store.As[store.Inspector](b.store.Store)
			wantError(t, "Resolve", inspector.Resolve(t.Context(), a.ID(), store.Resolution{Fence: a.View().Fence(), Forget: true}), nil)
			another := setupOver(t, b.store.Store, reprise.Config{}).claim(t, order("k"))
			wantError(t, "the mark of another", another.Unknown("the bank timed out"), nil)
			time.Sleep(lease)
			b.store.heal()
			complete(t, a, "late", reprise.EndContested)
		})
	}
}

// Another owner's record is found by the mark before a renewal finds it.
func TestMarkThatFindsTheLeaseLostReportsIt(t *testing.T) {
	inTime(t, func(t *testing.T) {
		b := setup(t, reprise.Config{MaxRun: maxRun})
		b.store.onUnknown = func(context.Context, store.UnknownRequest) error { return store.ErrLeaseLost }
		a := outrun(t, b, order("k"))
		time.Sleep(time.Second)
		b.events.wantCount(t, "lease-lost", 1)
		release(t, a)
	})
}
