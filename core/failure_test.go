package reprise

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/reprise-go/reprise/core/store"
)

func TestClassify(t *testing.T) {
	t.Parallel()
	const again, holds, end, refused, opens = 1, 2, 4, 8, 16 // repeatClaim, mayHold, repeatEnd, refused, unreachable
	for _, c := range []struct {
		err  error
		want int
	}{
		{store.ErrUnavailable, again | end | opens},
		{store.ErrBusy, again | end},
		{store.ErrUnknown, again | holds | end | opens},
		{store.ErrNotReplicated, again | holds | end},
		{store.ErrFull, end | refused},
		{store.ErrMisconfigured, end | refused},
		{store.ErrLeaseLost, 0},
		{store.ErrNotApplied, 0},
		{store.ErrCorrupt, 0},
		{store.ErrInvalid, 0},
		{store.ErrClosed, 0},
		// Two at once break the contract, and the careful reading is the one that
		// releases, or that does not fail open.
		{fmt.Errorf("%w: %w", store.ErrUnavailable, store.ErrUnknown), again | holds | end | opens},
		{fmt.Errorf("%w: %w", store.ErrUnavailable, store.ErrBusy), again | end},
		{fmt.Errorf("%w: %w", store.ErrUnavailable, store.ErrNotReplicated), again | holds | end},
	} {
		f, known := classify(fmt.Errorf("wrapped: %w", c.err))
		got := 0
		for bit, set := range map[int]bool{again: f.repeatClaim, holds: f.mayHold, end: f.repeatEnd, refused: f.refused, opens: f.unreachable} {
			if set {
				got |= bit
			}
		}
		if !known || got != c.want {
			t.Errorf("%v: known %v, %04b, want %04b", c.err, known, got, c.want)
		}
	}
	for _, err := range []error{nil, errors.New("another"), store.ErrNotFound, store.ErrRecordChanged, ErrRunTooLong, errDropped} {
		if _, known := classify(err); known {
			t.Errorf("%v is known", err)
		}
	}
}

func TestEndOfAnAttemptThatLostItsLease(t *testing.T) {
	t.Parallel()
	for holder, want := range map[store.Outcome]AttemptEnd{
		store.InProgress: EndContested, store.Completed: EndSuperseded, store.Mismatch: EndUnrecorded, store.Lapsed: EndContested,
	} {
		if got := endOfLost(holder); got != want {
			t.Errorf("%v: %v, want %v", holder, got, want)
		}
	}
}

func TestEndOfAFailedAtomicCompletion(t *testing.T) {
	t.Parallel()
	for err, want := range map[error]AttemptEnd{
		store.ErrNotApplied: EndNotApplied, store.ErrUnknown: EndUndecided, store.ErrUnavailable: EndUndecided, store.ErrLeaseLost: EndUndecided, store.ErrNotReplicated: EndUndecided,
	} {
		if got := endOfAtomic(fmt.Errorf("wrapped: %w", err)); got != want {
			t.Errorf("%v: %v, want %v", err, got, want)
		}
	}
}

func TestLocalDeadlineLeavesATenthAndNeverLessThanAQuarterSecond(t *testing.T) {
	t.Parallel()
	for lease, want := range map[time.Duration]time.Duration{
		time.Second:             750 * time.Millisecond,
		2500 * time.Millisecond: 2250 * time.Millisecond,
		30 * time.Second:        27 * time.Second,
		time.Hour:               54 * time.Minute,
		0:                       -250 * time.Millisecond,
	} {
		if got := localDeadline(lease); got != want {
			t.Errorf("lease %v: %v, want %v", lease, got, want)
		}
	}
}

func TestLeaseIsRenewedAtAThirdGiveOrTakeATenth(t *testing.T) {
	t.Parallel()
	const lease, third = 30 * time.Second, 10 * time.Second
	least, most, instants := third, third, map[time.Duration]bool{}
	for i := range 100_000 {
		sent := instant{mono: time.Duration(i%10) * 100 * time.Millisecond, wall: 12345}
		at := renewalDue(sent, lease)
		d := at.mono - sent.mono
		if at.wall-sent.wall != int64(d) {
			t.Fatal("the clocks differ")
		}
		least, most, instants[at.mono] = min(least, d), max(most, d), true
	}
	if least < third*9/10 || most > third*11/10 {
		t.Errorf("renewed after %v to %v, want 9s to 11s", least, most)
	}
	if least > third*92/100 || most < third*108/100 {
		t.Errorf("renewed after %v to %v, and no more spread", least, most)
	}
	if len(instants) > 6 {
		t.Errorf("%d instants for leases of one second, want 6 at most", len(instants))
	}
	sent := instant{mono: time.Hour}
	for _, lease := range []time.Duration{-time.Hour, -1, 0, 1, 59, time.Millisecond} {
		if d := renewalDue(sent, lease).mono - sent.mono; d > max(lease, 0) {
			t.Errorf("lease %v is renewed after %v", lease, d)
		}
	}
}
