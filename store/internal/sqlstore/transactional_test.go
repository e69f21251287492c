package sqlstore

import (
	"context"
	"errors"
	"testing"

	"github.com/reprise-go/reprise/core/store"
)

// away is a server that cannot be reached.
type away struct{}

func (away) Begin(context.Context, string, store.ID) (*Tx, error) { return nil, store.ErrUnavailable }

// TestCommitInDoubtIsNeverNotApplied: also where the watchdog fired while it was sent.
func TestCommitInDoubtIsNeverNotApplied(t *testing.T) {
	t.Parallel()
	s := NewTransactional(&Table{Dialect: &Dialect{Name: "db"}}, away{}, nil, 0)
	for _, expired := range []bool{false, true} {
		a := new(attempt)
		a.expired.Store(expired)
		if err := s.settle(t.Context(), a, "complete", store.ErrUnknown); !errors.Is(err, store.ErrUnknown) {
			t.Errorf("expired %t: %v, want ErrUnknown", expired, err)
		}
		if err := s.settle(t.Context(), a, "complete", errEnded); !errors.Is(err, store.ErrNotApplied) {
			t.Errorf("expired %t: %v before the commit, want ErrNotApplied", expired, err)
		}
	}
}
