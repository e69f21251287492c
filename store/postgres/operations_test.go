package reprisepg

import (
	"database/sql"
	"errors"
	"testing"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/postgres/internal/pgtest"
)

// TestOperationsRefuseInvalidArguments: before they ask for a connection.
func TestOperationsRefuseInvalidArguments(t *testing.T) {
	t.Parallel()
	away := &pgtest.Refusing{}
	db := sql.OpenDB(away)
	defer func() { _ = db.Close() }()
	s, err := NewSQL(db, Config{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, errs := t.Context(), map[string]error{}
	_, errs["List of another table"] = s.List(ctx, store.Query{Limit: 1, After: "postgres-000000000000-00"})
	_, errs["List without a limit"] = s.List(ctx, store.Query{})
	_, errs["Purge of nothing"] = s.Purge(ctx, 0)
	_, errs["Purge of too many"] = s.Purge(ctx, 100_001)
	errs["Resolve without a fence"] = s.Resolve(ctx, store.ID{1}, store.Resolution{})
	for what, err := range errs {
		if !errors.Is(err, store.ErrInvalid) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if n := len(away.Asked()); n != 0 {
		t.Errorf("%d connections were asked for", n)
	}
	for _, limit := range []int{1, 100_000} {
		if _, err := s.Purge(ctx, limit); !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("Purge of %d without a server: %v", limit, err)
		}
	}
	if _, err := s.Inspect(ctx, store.ID{1}); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("Inspect without a server: %v", err)
	}
}
