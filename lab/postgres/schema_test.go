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

	st, err := reprisepg.Open(t.Context(), f.Pool, f.Config)
	if st == nil {
		// Test servers run without fsync, the only thing that Open refuses.
		labtest.Want(t, "Open", err, store.ErrMisconfigured)
		if strings.Contains(err.Error(), ";") && strings.Contains(err.Error(), "Migrate") {
			t.Errorf("Open of a migrated schema: %v", err)
		}
	}
}

// TestPostgresTableAsMigrated: without CHECK constraints a row still has a value in every
// column but the payload, an ID that no other has, and a place in the
// purge's index.
func TestPostgresTableAsMigrated(t *testing.T) {
	t.Parallel()
	f := pgSetup(t, servers.SharedPostgres(t), labtest.MaxConns(2))
	nullable := pgValue[string](t, f.Pool, "SELECT string_agg(attname, ' ') FROM pg_attribute WHERE attrelid = $1::regclass AND attnum > 0 AND NOT attnotnull", f.records())
	if nullable != "payload" {
		t.Errorf("columns without NOT NULL: %s", nullable)
	}
	indexes := pgValue[string](t, f.Pool, `SELECT string_agg(regexp_replace(indexdef, ' (INDEX|ON) .*\(', ' ('), '; ' ORDER BY indexdef DESC) FROM pg_indexes
		WHERE schemaname = $1 AND tablename = 'reprise_records'`, f.Config.Schema)
	if indexes != "CREATE UNIQUE (id); CREATE (due_at)" {
		t.Errorf("indexes: %s", indexes)
	}
	if _, err := f.Pool.Exec(t.Context(), "INSERT INTO "+f.name("reprise_records_migrations")+" VALUES (1)"); err == nil {
		t.Error("a migration is recorded twice")
	}
}
