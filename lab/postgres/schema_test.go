package postgres

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/servers"
	reprisepg "github.com/reprise-go/reprise/store/postgres"
)

// TestPostgresForgottenMigrate: a service whose tables do not exist finds out at its
// start, and one that did not look has it in its log and in its errors.
func TestPostgresForgottenMigrate(t *testing.T) {
	t.Parallel()
	f := pgSetup(t, servers.SharedPostgres(t))
	var log pgLog
	c := reprisepg.Config{Schema: "nowhere", Logger: slog.New(slog.NewTextHandler(&log, nil))}
	_, leased := reprisepg.Open(t.Context(), f.Pool, c)
	nowhere := pgOn(f.Pool, c)
	_, claim := nowhere.Leased(t).Claim(t.Context(), labtest.NewClaim())
	for what, err := range map[string]error{"Open": leased, "claim": claim} {
		labtest.Want(t, what, err, store.ErrMisconfigured)
		if !strings.Contains(err.Error(), "Migrate, or apply what ") {
			t.Errorf("%s does not say what to do: %v", what, err)
		}
	}
	if !log.contains("run Migrate") {
		t.Error("the log does not say that the tables are missing")
	}
}
