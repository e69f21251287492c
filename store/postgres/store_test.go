package reprisepg

import (
	"database/sql"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/reprise-go/reprise/core/store"
)

// TestNewContactsNoServer: nor does a listing with a cursor of another table. Other calls
// do, and fail where none answers.
func TestNewContactsNoServer(t *testing.T) {
	t.Parallel()
	away := &refusing{}
	db := sql.OpenDB(away)
	defer func() { _ = db.Close() }()
	s, err := New(db, Config{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.List(t.Context(), store.Query{Limit: 1, After: "postgres-000000000000-00"}); !errors.Is(err, store.ErrInvalid) {
		t.Errorf("a cursor of another table: %v", err)
	}
	if n := len(away.Asked()); n != 0 {
		t.Errorf("%d connections were asked for", n)
	}
	if _, err := s.Inspect(t.Context(), store.ID{1}); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("Inspect: %v", err)
	}
	if _, err := Open(t.Context(), db, Config{}); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("Open: %v", err)
	}
	var (
		pool *pgxpool.Pool
		none *sql.DB
	)
	_, newPool := New(pool, Config{})
	_, newSQL := New(none, Config{})
	_, opened := Open(t.Context(), pool, Config{})
	_, badName := New(db, Config{Schema: "a b"})
	_, version := SchemaVersion(t.Context(), pool, Config{})
	for what, err := range map[string]error{
		"New without a pool": newPool, "New without a *sql.DB": newSQL, "Open without a pool": opened, "New with a bad name": badName,
		"Migrate without a pool": Migrate(t.Context(), pool, Config{}), "SchemaVersion without a pool": version,
	} {
		if !errors.Is(err, store.ErrInvalid) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
