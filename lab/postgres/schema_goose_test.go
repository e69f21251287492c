package postgres

import (
	"testing"
	"testing/fstest"

	"github.com/pressly/goose/v3"

	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/servers"
	reprisepg "github.com/reprise-go/reprise/store/postgres"
)

// TestPostgresGoose: goose applies the migrations that are printed for it, in both
// directions, and Migrate and Check recognize them.
func TestPostgresGoose(t *testing.T) {
	t.Parallel()
	server := servers.SharedPostgres(t)
	f := pgSetup(t, server)
	f.exec(t, "DROP SCHEMA "+f.Config.Schema+" CASCADE")
	f.exec(t, "CREATE SCHEMA "+f.Config.Schema)
	list, err := reprisepg.Migrations(f.Config)
	pgWant(t, "migrations", err, nil)
	files := fstest.MapFS{}
	for _, m := range list {
		files[m.Name+".sql"] = &fstest.MapFile{Data: []byte(m.Goose())}
	}
	db := labtest.NewDB(t, server.URL(), labtest.SessionParam("search_path", f.Config.Schema))
	provider, err := goose.NewProvider(goose.DialectPostgres, db, files)
	pgWant(t, "goose", err, nil)

	schemaIs := func(what string) {
		t.Helper()
		findings := pgFindings(t, f.Leased(t))
		known := len(findings) == 0
		if known != (what == "current") {
			t.Errorf("after goose the check finds %v, want a schema that is %s", findings, what)
		}
	}
	for range 2 {
		_, err = provider.Up(t.Context())
		pgWant(t, "up", err, nil)
		schemaIs("current")
		pgWant(t, "Migrate after goose", reprisepg.Migrate(t.Context(), f.Pool, f.Config), nil)
		pgLeasedLife(t, f.Leased(t))

		_, err = provider.DownTo(t.Context(), 0)
		pgWant(t, "down", err, nil)
		schemaIs("missing")
		left := pgValue[int](t, f.Pool, `SELECT (SELECT count(*) FROM pg_class WHERE relnamespace = $1::regnamespace AND relname LIKE 'reprise%')
			+ (SELECT count(*) FROM pg_proc WHERE pronamespace = $1::regnamespace)`, f.Config.Schema)
		if left != 0 {
			t.Errorf("%d relations and functions are left", left)
		}
	}
}
