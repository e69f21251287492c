package postgres

import (
	"testing"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/servers"
	reprisepg "github.com/reprise-go/reprise/store/postgres"
)

// TestPostgresPurgeKeepsVisibleRecords: a record that the purge finds in its index stays
// while it is visible: an attempt whose lease lives, and a lapsed one within its
// retention.
func TestPostgresPurgeKeepsVisibleRecords(t *testing.T) {
	t.Parallel()
	f := pgSetup(t, servers.SharedPostgres(t), labtest.MaxConns(2))
	st := f.Leased(t)
	const live, over = "now() + interval '1 hour'", "now() - interval '1 second'"
	for _, r := range []struct{ lease, valid, payload string }{
		{live, over, "NULL"}, {over, live, "NULL"}, // seen
		{over, over, "NULL"}, {over, over, "''"}, {live, over, "''"}, // the lease of a response says when it was completed
	} {
		key := pgClaim()
		pgMustClaim(t, st, key, store.Claimed)
		f.exec(t, f.pgDamage("expires_at = "+over+", lease_until = "+r.lease+", valid_until = "+r.valid+", payload = "+r.payload+
			", state = CASE WHEN "+r.payload+"::bytea IS NULL THEN 1 ELSE 2 END"), key.ID[:])
	}
	if n, err := st.Purge(t.Context(), 1); err != nil || n != 1 {
		t.Errorf("a purge of one record deleted %d, %v", n, err)
	}
	if n, err := st.Purge(t.Context(), 100); err != nil || n != 2 {
		t.Errorf("%d records were purged after the first, %v; want 2", n, err)
	}
}

// TestPostgresVersionOfTheSchema: 0 without one, and the last migration after Migrate,
// which creates the schema only where it is missing.
func TestPostgresVersionOfTheSchema(t *testing.T) {
	t.Parallel()
	f := pgSetup(t, servers.SharedPostgres(t), labtest.MaxConns(2))
	list, err := reprisepg.Migrations(f.Config)
	if err != nil {
		t.Fatal(err)
	}
	version := func(c reprisepg.Config, want int) {
		t.Helper()
		if got, err := reprisepg.SchemaVersion(t.Context(), f.Pool, c); err != nil || got != want {
			t.Errorf("SchemaVersion is %d, %v; want %d", got, err, want)
		}
	}
	version(f.Config, len(list))
	another := reprisepg.Config{Schema: f.Config.Schema, Table: "another"}
	version(another, 0)
	pgWant(t, "migrate in a schema that is there", reprisepg.Migrate(t.Context(), f.Pool, another), nil)
	version(another, len(list))
}
