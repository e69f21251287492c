package reprisepg

import (
	"database/sql"
	"errors"
	"testing"

	"github.com/reprise-go/reprise/core/store"
)

// TestNewContactsNoServer: nor does a listing with a cursor of another table. Other calls
// do, and fail where none answers.
func TestNewContactsNoServer(t *testing.T) {
	t.Parallel()
	away := &refusing{}
	db := sql.OpenDB(away)
	defer func() { _ = db.Close() }()
	s, err := NewSQL(db, Config{})
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
	if _, err := OpenSQL(t.Context(), db, Config{}); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("OpenSQL: %v", err)
	}
	for name, open := range map[string]func() (*Store, error){
		"New without a pool":  func() (*Store, error) { return New(nil, Config{}) },
		"Open without a pool": func() (*Store, error) { return Open(t.Context(), nil, Config{}) },
		"NewSQL without one":  func() (*Store, error) { return NewSQL(nil, Config{}) },
		"New with a bad name": func() (*Store, error) { return NewSQL(db, Config{Schema: "a b"}) },
	} {
		if _, err := open(); !errors.Is(err, store.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err = SchemaVersion(t.Context(), nil, Config{})
	for what, err := range map[string]error{
		"Migrate": Migrate(t.Context(), nil, Config{}), "MigrateSQL": MigrateSQL(t.Context(), nil, Config{}), "SchemaVersion": err,
	} {
		if !errors.Is(err, store.ErrInvalid) {
			t.Errorf("%s without a pool: %v", what, err)
		}
	}
}
