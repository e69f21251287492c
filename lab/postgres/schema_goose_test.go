package postgres

import (
	"strings"
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

		// One step back: this release refuses the schema of the former one, in words.
		_, err = provider.Down(t.Context())
		pgWant(t, "down", err, nil)
		schemaIs("old")
		r := pgClaim()
		_, err = f.Leased(t).Claim(t.Context(), r)
		pgWant(t, "claim on the former schema", err, reprise.ErrMisconfigured)
		if !strings.Contains(err.Error(), "older than this release: run reprisepg.Migrate") {
			t.Errorf("the error does not say what to do: %v", err)
		}

		// Two steps back: the functions of version 1 serve a release that knows no
		// other.
		first := pgClaimV1(t, f, r)
		_, err = provider.Down(t.Context())
		pgWant(t, "down", err, nil)
		if !pgValue[bool](t, f.Pool, "SELECT last_value > extract(epoch FROM clock_timestamp() + interval '20 seconds') * 1000000 FROM "+f.name("reprise_records_fence")) {
			t.Error("a claim that began before the step back committed may have a higher fence than those after it")
		}
		f.exec(t, "DELETE FROM "+f.records()+" WHERE id = $1", r.ID[:])
		if again := pgClaimV1(t, f, r); again <= first {
			t.Errorf("fence %d was granted after %d", again, first)
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

// pgClaimV1 claims as the first releases do, and returns the fence.
func pgClaimV1(t *testing.T, f *pgFixture, r reprise.ClaimRequest) int64 {
	t.Helper()
	return pgValue[int64](t, f.Pool, "SELECT fence FROM "+f.name("reprise_records_claim_v1")+"($1, $2, $3, true, 0, 60000000, 60000000)",
		r.ID[:], r.Owner[:], r.Fingerprint[:])
}
