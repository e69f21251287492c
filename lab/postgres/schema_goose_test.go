package postgres

import (
	"testing"
	"testing/fstest"

	"github.com/pressly/goose/v3"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/lab/servers"
	reprisepg "github.com/reprise-go/reprise/store/postgres"
)

// TestPostgresGoose: goose applies the migrations that are printed for it, in both
// directions, and Migrate and Check know what it applied.
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

		// One step back: the functions of version 1 serve a release that knows no
		// other.
		_, err = provider.Down(t.Context())
		pgWant(t, "down", err, nil)
		schemaIs("old")
		if !pgValue[bool](t, f.Pool, "SELECT last_value > extract(epoch FROM clock_timestamp() + interval '20 seconds') * 1000000 FROM "+f.name("reprise_records_fence")) {
			t.Error("a claim that began before the step back committed may have a higher fence than those after it")
		}
		r := pgClaim()
		first := pgMustClaim(t, f.Leased(t), r, reprise.Claimed)
		pgWant(t, "release", f.Leased(t).Release(t.Context(), r.ID, r.Owner), nil)
		if again := pgMustClaim(t, f.Leased(t), r, reprise.Claimed); again.Fence <= first.Fence {
			t.Errorf("fence %d was granted after %d", again.Fence, first.Fence)
		}

		_, err = provider.DownTo(t.Context(), 0)
		pgWant(t, "down to nothing", err, nil)
		schemaIs("missing")
		left := pgValue[int](t, f.Pool, `SELECT (SELECT count(*) FROM pg_class WHERE relnamespace = $1::regnamespace AND relname LIKE 'reprise%')
			+ (SELECT count(*) FROM pg_proc WHERE pronamespace = $1::regnamespace)`, f.Config.Schema)
		if left != 0 {
			t.Errorf("%d relations and functions are left", left)
		}
	}
}
