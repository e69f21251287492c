package table

import (
	"database/sql"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/postgres/internal/pgtest"
)

// A completion without a connection was not executed. The lease may still be held.
func TestCompletionWithoutAConnectionIsNotALostLease(t *testing.T) {
	t.Parallel()
	away := &pgtest.Refusing{}
	db := sql.OpenDB(away)
	t.Cleanup(func() { _ = db.Close() })
	err := newTestTable(t, db, slog.Default()).Complete(t.Context(), &store.CompleteRequest{
		ID: store.ID{1}, Owner: store.NewOwner(), Policy: store.Policy{Retention: time.Hour}, Payload: []byte("answer"), Attempt: 1,
	})
	if !errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrLeaseLost) {
		t.Errorf("%v, want ErrUnavailable", err)
	}
	if n := len(away.Asked()); n != 1 { // a look for the owner would ask again
		t.Errorf("%d connections were asked for, want 1", n)
	}
}
