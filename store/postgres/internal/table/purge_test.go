package table

import (
	"database/sql"
	"errors"
	"log/slog"
	"testing"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/postgres/internal/pgtest"
)

// TestPurgeRefusesInvalidLimits: and asks for a connection with the others.
func TestPurgeRefusesInvalidLimits(t *testing.T) {
	t.Parallel()
	db := sql.OpenDB(&pgtest.Refusing{})
	defer func() { _ = db.Close() }()
	st := newTestTable(t, db, slog.Default())
	for limit, want := range map[int]error{
		-1: store.ErrInvalid, 0: store.ErrInvalid, 1: store.ErrUnavailable, 100_000: store.ErrUnavailable, 100_001: store.ErrInvalid,
	} {
		if _, err := st.Purge(t.Context(), limit); !errors.Is(err, want) {
			t.Errorf("a purge of %d: %v, want %v", limit, err, want)
		}
	}
}
