package reprisepg

import (
	"database/sql"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/reprise-go/reprise/core/store"
)

func TestRenewStatusFollowsTheWord(t *testing.T) {
	t.Parallel()
	for word, want := range map[string]store.RenewStatus{
		"renewed": store.Renewed, "busy": store.RenewBusy, "completed": store.RenewCompleted, "lost": store.RenewLost, "": store.RenewLost,
	} {
		if got := renewStatus(word); got != want {
			t.Errorf("%q: %v, want %v", word, got, want)
		}
	}
}

// TestRenewNeedsNoServerForNothing: nor for a request that is invalid.
func TestRenewNeedsNoServerForNothing(t *testing.T) {
	t.Parallel()
	r := newTestTable(t, new(sql.DB), slog.Default())
	if got, err := r.Renew(t.Context(), nil); got != nil || err != nil {
		t.Errorf("nothing: %v, %v", got, err)
	}
	bad := []store.RenewRequest{{ID: store.ID{1}, Owner: store.NewOwner(), Lease: -time.Second}}
	if _, err := r.Renew(t.Context(), bad); !errors.Is(err, store.ErrInvalid) {
		t.Errorf("a negative lease: %v", err)
	}
}
