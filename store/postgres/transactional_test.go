package reprisepg

import (
	"database/sql"
	"errors"
	"testing"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/postgres/internal/pgtest"
)

// TestNewTransactionalNeedsThreeConnections: of which it leaves two to duplicates and to
// the look for a lost COMMIT.
func TestNewTransactionalNeedsThreeConnections(t *testing.T) {
	t.Parallel()
	for conns, slots := range map[int]int{0: 0, 1: 0, 2: 0, 3: 1, 10: 8} {
		db := sql.OpenDB(&pgtest.Refusing{})
		db.SetMaxOpenConns(conns)
		s, err := NewTransactionalSQL(db, Config{})
		switch {
		case slots == 0 && !errors.Is(err, store.ErrInvalid):
			t.Errorf("%d connections: %v", conns, err)
		case slots > 0 && (err != nil || s.Stats() != Stats{Slots: slots}):
			t.Errorf("%d connections: %v", conns, err)
		}
		_ = db.Close()
	}
	if _, err := OpenTransactional(t.Context(), nil, Config{}); !errors.Is(err, store.ErrInvalid) {
		t.Errorf("without a pool: %v", err)
	}
}
