package transactional

import (
	"database/sql"
	"testing"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/postgres/internal/pgtest"
	"github.com/reprise-go/reprise/store/postgres/internal/table"
	"github.com/reprise-go/reprise/store/postgres/internal/table/tabletest"
)

// newTestStore returns a store over a pool of three connections without a server.
func newTestStore(t *testing.T) *Store {
	t.Helper()
	db := sql.OpenDB(&pgtest.Refusing{})
	t.Cleanup(func() { _ = db.Close() })
	db.SetMaxOpenConns(3)
	s, err := New(tabletest.New(t, db, table.Options{}))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestLockKeyNamesTableAndID: advisory locks belong to the whole database.
func TestLockKeyNamesTableAndID(t *testing.T) {
	t.Parallel()
	one, other := newTestStore(t), newTestStore(t)
	other.table.Names.Lock = "public.other"
	keys := map[int64]bool{one.lockKey(store.ID{1}): true, one.lockKey(store.ID{2}): true, other.lockKey(store.ID{1}): true}
	if len(keys) != 3 || !keys[one.lockKey(store.ID{1})] {
		t.Errorf("the keys are %v", keys)
	}
}
