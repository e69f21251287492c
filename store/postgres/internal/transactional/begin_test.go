package transactional

import (
	"database/sql"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/reprise-go/reprise/core/store"
)

// database/sql begins transactions with the isolation that pgx would.
func TestIsolationLevelsAreTheSameForBothDrivers(t *testing.T) {
	t.Parallel()
	for level, want := range map[pgx.TxIsoLevel]sql.IsolationLevel{
		pgx.ReadCommitted: sql.LevelReadCommitted, pgx.RepeatableRead: sql.LevelRepeatableRead,
		pgx.Serializable: sql.LevelSerializable, "": sql.LevelReadCommitted,
	} {
		if got := sqlIsolation(level); got != want {
			t.Errorf("%q: %v, want %v", level, got, want)
		}
	}
}

// A claim without a connection was not executed, and begins no attempt.
func TestNoAttemptBeginsWithoutAConnection(t *testing.T) {
	t.Parallel()
	s := newTestStore(t)
	a, result, err := s.begin(t.Context(), store.ClaimRequest{ID: store.ID{1}, Owner: store.NewOwner(), Lease: time.Minute, Policy: store.Policy{Retention: time.Hour}}, true)
	if a != nil || result.Outcome != (store.ClaimResult{}).Outcome || !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("%v, %+v, %v; want ErrUnavailable", a, result, err)
	}
}
