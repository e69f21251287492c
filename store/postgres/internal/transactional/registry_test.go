package transactional

import (
	"database/sql"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/postgres/internal/table"
	"github.com/reprise-go/reprise/store/postgres/internal/table/tabletest"
)

// TestUndecidedOwnersAreForgotten: an owner whose call has no answer is remembered while
// its transaction may still be open, and not for ever.
func TestUndecidedOwnersAreForgotten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &Store{table: tabletest.New(t, new(sql.DB), table.Options{TxTimeout: time.Minute}), undecided: map[store.Owner]time.Time{}}
		first, second, third := store.NewOwner(), store.NewOwner(), store.NewOwner()
		s.setUndecided(first)
		time.Sleep(2 * time.Minute) //nolint:forbidigo // in a bubble
		s.setUndecided(second)
		if !s.isUndecided(first) || !s.isUndecided(second) || s.isUndecided(third) {
			t.Error("after twice TxTimeout an owner is forgotten, or one is there that was never undecided")
		}
		time.Sleep(time.Nanosecond) //nolint:forbidigo // in a bubble
		s.setUndecided(third)
		if s.isUndecided(first) || !s.isUndecided(second) || !s.isUndecided(third) {
			t.Error("after more than twice TxTimeout an owner is still there, or a later one is not")
		}
		s.setDecided(second)
		if s.isUndecided(second) || !s.isUndecided(third) {
			t.Error("a decision about one owner is not about that one")
		}
	})
}

// TestAttemptIsFoundByIDAndOwner: neither another operation nor another owner gets
// it, and it is taken once.
func TestAttemptIsFoundByIDAndOwner(t *testing.T) {
	t.Parallel()
	a := &attempt{id: store.ID{1}, owner: store.NewOwner()}
	s := &Store{attempts: map[store.Owner]*attempt{a.owner: a}}
	for _, other := range []struct {
		id    store.ID
		owner store.Owner
	}{{store.ID{2}, a.owner}, {a.id, store.NewOwner()}} {
		if s.find(other.id, other.owner) != nil || s.take(other.id, other.owner) != nil {
			t.Error("an attempt is found under another name")
		}
		if ctx := s.Bind(t.Context(), other.id, other.owner); attemptOf(ctx) != nil {
			t.Error("another attempt is bound")
		}
	}
	if s.find(a.id, a.owner) != a || attemptOf(s.Bind(t.Context(), a.id, a.owner)) != a || s.take(a.id, a.owner) != a || s.take(a.id, a.owner) != nil {
		t.Error("an attempt is not found, or taken twice")
	}
}
