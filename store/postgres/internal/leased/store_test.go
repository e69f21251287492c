package leased

import (
	"database/sql"
	"errors"
	"testing"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/postgres/internal/pgtest"
	"github.com/reprise-go/reprise/store/postgres/internal/table"
	"github.com/reprise-go/reprise/store/postgres/internal/table/tabletest"
)

func TestStoreRefusesInvalidRequestsWithoutAServer(t *testing.T) {
	t.Parallel()
	away := &pgtest.Refusing{}
	db := sql.OpenDB(away)
	defer func() { _ = db.Close() }()
	s := New(tabletest.New(t, db, table.Options{}))
	if _, err := s.Claim(t.Context(), store.ClaimRequest{}); !errors.Is(err, store.ErrInvalid) {
		t.Errorf("claim: %v", err)
	}
	if err := s.Complete(t.Context(), store.CompleteRequest{}); !errors.Is(err, store.ErrInvalid) {
		t.Errorf("complete: %v", err)
	}
	if n := len(away.Asked()); n != 0 {
		t.Errorf("%d connections were asked for", n)
	}
	if err := s.Release(t.Context(), store.ID{1}, store.NewOwner()); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("release: %v", err)
	}
}
