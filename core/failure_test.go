package reprise

import (
	"errors"
	"fmt"
	"testing"

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
