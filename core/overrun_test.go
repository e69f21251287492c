package reprise_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/store"
)

const (
	maxRun  = time.Minute
	overran = "ran longer than MaxRun" // the reason in the record of a handler that did not return
)

// outrun begins op in b, whose handlers are bounded by maxRun, and lets it run for a
// lease more than that.
func outrun(t *testing.T, b *bench, op reprise.Operation) *reprise.Attempt {
	t.Helper()
	a := b.claim(t, op)
	time.Sleep(maxRun + lease)
	synctest.Wait()
	return a
}

// The handler has a lease more to return in. Then its record refuses every retry,
// whatever its preset, because the handler still runs.
func TestHandlerThatDoesNotReturnAfterMaxRunIsUnknown(t *testing.T) {
	for _, preset := range presets {
		inTimeNamed(t, preset.String(), func(t *testing.T) {
			b := setup(t, reprise.Config{MaxRun: maxRun})
			other := setupOver(t, b.store.Store, reprise.Config{})
			op := order("k")
			op.Preset = preset
			a := b.claim(t, op)
			time.Sleep(maxRun - 1)
			wantCause(t, a.Context(), nil)
			time.Sleep(time.Nanosecond)
			wantCause(t, a.Context(), reprise.ErrRunTooLong)
			time.Sleep(lease - 1)
			synctest.Wait()
			other.want(t, op, reprise.InProgress)
			b.want(t, op, reprise.InProgress)
			time.Sleep(time.Nanosecond)
			synctest.Wait()
			b.wantUnknown(t, op, overran)
			time.Sleep(10 * lease)
			b.wantUnknown(t, op, overran)
			wantCause(t, a.Context(), reprise.ErrRunTooLong)
			if e := b.events.of(t, "unknown"); e.Counted || e.Reason != overran || e.Attempt != 1 || e.ID != a.ID() {
				t.Errorf("reported as %+v", e)
			}
			for kind, want := range map[string]int{"run-too-long": 1, "unknown": 1, "lease-lost": 0, "store-error": 0} {
				if n := b.events.count(kind); n != want {
					t.Errorf("%d events %s, want %d", n, kind, want)
				}
			}
			if s := b.Stats(); s.Running != 1 || s.Leases != 0 || s.Background != 0 {
				t.Errorf("%d run, %d leases are kept and %d tasks held, want 1, 0 and 0", s.Running, s.Leases, s.Background)
			}
			release(t, other.claim(t, order("another")))
			_ = a.Release()
		})
	}
}

// Whatever such a handler does at last, its record stays. Its client gets its response.
func TestHandlerThatReturnsAfterItsRecordIsUnknown(t *testing.T) {
	for name, end := range map[string]func(t *testing.T, a *reprise.Attempt){
		"completes": func(t *testing.T, a *reprise.Attempt) {
			wantError(t, "the completion", complete(t, a, "late", reprise.EndUnknown).Err, reprise.ErrRunTooLong)
		},
		"releases": func(t *testing.T, a *reprise.Attempt) {
			wantError(t, "the release", a.Release(), reprise.ErrRunTooLong)
		},
		"does not know": func(t *testing.T, a *reprise.Attempt) {
			wantError(t, "the mark", a.Unknown("the bank timed out"), nil)
		},
	} {
		inTimeNamed(t, name, func(t *testing.T) {
			b := setup(t, reprise.Config{MaxRun: maxRun})
			a := outrun(t, b, order("k"))
			end(t, a)
			b.wantUnknown(t, order("k"), overran)
			if s := b.Stats(); s.Ends[reprise.EndUnknown] != 1 || s.Running != 0 {
				t.Errorf("ended as %v", s.Ends)
			}
			b.events.wantCount(t, "lease-lost", 0)
		})
	}
}

// An operator decides before the handler returns.
func TestHandlerThatReturnsAfterAnOperatorResolvedItsRecord(t *testing.T) {
	for name, c := range map[string]struct {
		resolution store.Resolution
		end        reprise.AttemptEnd
		replayed   string
	}{
		"forgotten": {store.Resolution{Forget: true}, reprise.EndRecorded, "late"},
		"answered":  {store.Resolution{Payload: []byte("resolved"), Retention: retention}, reprise.EndSuperseded, "resolved"},
	} {
		inTimeNamed(t, name, func(t *testing.T) {
			b := setup(t, reprise.Config{MaxRun: maxRun})
			a := outrun(t, b, order("k"))
			inspector, _ := store.As[store.Inspector](b.store.Store)
			c.resolution.Fence = a.View().Fence()
			wantError(t, "Resolve", inspector.Resolve(t.Context(), a.ID(), c.resolution), nil)
			complete(t, a, "late", c.end)
			if got := b.want(t, order("k"), reprise.Replayed).Payload; string(got) != c.replayed {
				t.Errorf("replayed %q, want %q", got, c.replayed)
			}
		})
	}
}

// A release after the mark of its record does nothing, which the store does not say. It
// is reported as what it is, also where the background repeats it.
func TestOverrunThatIsReleasedWhileItIsMarked(t *testing.T) {
	for _, c := range []struct {
		executed, later bool
		end             reprise.AttemptEnd
		retry           reprise.Outcome
	}{
		{false, false, reprise.EndReleased, reprise.Claimed},
		{false, true, reprise.EndReleased, reprise.Claimed},
		{true, false, reprise.EndUnknown, reprise.Lapsed},
		{true, true, reprise.EndUnknown, reprise.Lapsed},
	} {
		inTimeNamed(t, fmt.Sprintf("marked first %v, in the background %v", c.executed, c.later), func(t *testing.T) {
			b := setup(t, reprise.Config{MaxRun: maxRun})
			b.store.OnUnknown = func(ctx context.Context, r store.UnknownRequest) (err error) {
				if c.executed {
					err = b.store.Store.Unknown(ctx, r)
				}
				time.Sleep(lease / 4)
				if !c.executed {
					err = b.store.Store.Unknown(context.WithoutCancel(ctx), r)
				}
				return errors.Join(err, store.ErrUnknown)
			}
			a := outrun(t, b, order("k"))
			var away atomic.Bool
			away.Store(c.later)
			b.store.OnRelease = func(ctx context.Context, id store.ID, owner store.Owner) error {
				if away.Load() {
					return store.ErrUnavailable
				}
				return b.store.Store.Release(ctx, id, owner)
			}
			err := a.Release()
			away.Store(false)
			switch {
			case c.later:
				wantError(t, "the release", err, store.ErrUnavailable)
			case c.end == reprise.EndUnknown:
				wantError(t, "the release", err, reprise.ErrRunTooLong)
			case err != nil:
				t.Errorf("the release: %v", err)
			}
			time.Sleep(lease / 2)
			synctest.Wait()
			if s := b.Stats(); s.Ends[c.end] != 1 || s.Running != 0 {
				t.Errorf("ended as %v", s.Ends)
			}
			if next := b.want(t, order("k"), c.retry); next.Attempt != nil {
				release(t, next.Attempt)
			}
		})
	}
}

// Marks that find the background full keep their leases and wait, and leave room for
// completions.
func TestOverrunsWaitForRoomInTheBackground(t *testing.T) {
	inTime(t, func(t *testing.T) {
		const overruns = 10
		b := setup(t, reprise.Config{MaxRun: maxRun, Background: reprise.BackgroundLimits{Tasks: 2}})
		other := setupOver(t, b.store.Store, reprise.Config{})
		b.failing(1<<30, false, store.ErrUnavailable)
		b.store.OnComplete = func(context.Context, store.CompleteRequest) error { return store.ErrUnavailable }
		var running []*reprise.Attempt
		for n := range overruns {
			running = append(running, b.claim(t, order(strconv.Itoa(n))))
		}
		time.Sleep(maxRun + lease)
		complete(t, b.claim(t, order("k")), "answer", reprise.EndUnrecorded)
		time.Sleep(3 * lease)
		for n := range overruns {
			other.want(t, order(strconv.Itoa(n)), reprise.InProgress)
		}
		if s := b.Stats(); s.Background != 2 || s.BackgroundDropped != 0 {
			t.Errorf("%d tasks are held and %d were dropped, want 2 and 0", s.Background, s.BackgroundDropped)
		}
		b.store.Heal()
		time.Sleep(overruns * 2 * lease)
		other.want(t, order("k"), reprise.Replayed)
		for n, a := range running {
			b.wantUnknown(t, order(strconv.Itoa(n)), overran)
			complete(t, a, "late", reprise.EndUnknown)
		}
	})
}

// Until its handler has returned, a run is open work of its engine, which nothing runs
// beside even where the store is away.
func TestOverrunIsNotOverBeforeItsHandlerReturns(t *testing.T) {
	for _, marked := range []bool{false, true} {
		inTimeNamed(t, fmt.Sprint("marked ", marked), func(t *testing.T) {
			b := setup(t, reprise.Config{MaxRun: maxRun})
			if !marked {
				b.failing(1<<30, false, store.ErrUnavailable)
			}
			a := outrun(t, b, order("k"))
			away(b, store.ErrUnavailable)
			b.want(t, open(order("k")), reprise.InProgress)
			start := time.Now()
			if err := closeWithin(t, b.Engine, time.Second); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Second {
				t.Errorf("Close: %v after %v, want it to wait for the second", err, time.Since(start))
			}
			b.store.Heal()
			if end, err := a.Complete(reprise.Completion{}); err != nil || marked != (end.End == reprise.EndUnknown) {
				t.Errorf("ended as %v, %v", end.End, err)
			}
		})
	}
}

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
			b.store.OnUnknown = func(ctx context.Context, r store.UnknownRequest) (err error) {
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
			b.store.Heal()
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
			b.store.OnUnknown = func(ctx context.Context, r store.UnknownRequest) error {
				return errors.Join(b.store.Store.Unknown(ctx, r), lost)
			}
			a := outrun(t, b, order("k"))
			a.Returned()
			inspector, _ := store.As[store.Inspector](b.store.Store)
			wantError(t, "Resolve", inspector.Resolve(t.Context(), a.ID(), store.Resolution{Fence: a.View().Fence(), Forget: true}), nil)
			another := setupOver(t, b.store.Store, reprise.Config{}).claim(t, order("k"))
			wantError(t, "the mark of another", another.Unknown("the bank timed out"), nil)
			time.Sleep(lease)
			b.store.Heal()
			complete(t, a, "late", reprise.EndContested)
		})
	}
}

// Another owner's record is found by the mark before a renewal finds it.
func TestMarkThatFindsTheLeaseLostReportsIt(t *testing.T) {
	inTime(t, func(t *testing.T) {
		b := setup(t, reprise.Config{MaxRun: maxRun})
		b.store.OnUnknown = func(context.Context, store.UnknownRequest) error { return store.ErrLeaseLost }
		a := outrun(t, b, order("k"))
		time.Sleep(time.Second)
		b.events.wantCount(t, "lease-lost", 1)
		release(t, a)
	})
}
