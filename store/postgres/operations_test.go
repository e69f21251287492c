package reprisepg

import (
	"database/sql"
	"errors"
	"testing"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/postgres/internal/pgtest"
)

// TestCursorOfAnotherTableIsRefused: before a connection is asked for.
func TestCursorOfAnotherTableIsRefused(t *testing.T) {
	t.Parallel()
	away := &pgtest.Refusing{}
	db := sql.OpenDB(away)
	defer func() { _ = db.Close() }()
	s, err := NewSQL(db, Config{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.List(t.Context(), store.Query{Limit: 1, After: "postgres-000000000000-00"}); !errors.Is(err, store.ErrInvalid) {
		t.Errorf("List of another table: %v", err)
	}
	if n := len(away.Asked()); n != 0 {
		t.Errorf("%d connections were asked for", n)
	}
	if _, err := s.Inspect(t.Context(), store.ID{1}); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("Inspect without a server: %v", err)
	}
}
