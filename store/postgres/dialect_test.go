package reprisepg

import (
	"errors"
	"testing"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/internal/sqlstore"
	"github.com/reprise-go/reprise/store/postgres/internal/pgtest"
)

// TestLostRacesAreRepeated: a statement that PostgreSQL cannot serialize, that it ends to
// resolve a deadlock, or that waited for a lock, and no other.
func TestLostRacesAreRepeated(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]error{
		"40001": sqlstore.ErrLostRace, "40P01": sqlstore.ErrLostRace, "55P03": sqlstore.ErrLostRace, "57014": store.ErrUnavailable, "53100": store.ErrFull,
	} {
		if got := classify(pgtest.ServerError("ERROR", code), false); !errors.Is(got, want) {
			t.Errorf("%s: %v, want %v", code, got, want)
		}
	}
}
