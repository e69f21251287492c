package postgres

import (
	"context"
	"database/sql"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/pressly/goose/v3"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/lab/internal/schematest"
	"github.com/reprise-go/reprise/servers"
	reprisepg "github.com/reprise-go/reprise/store/postgres"
)

func TestPostgresMigrationsNeverChange(t *testing.T) {
	t.Parallel()
	list, err := reprisepg.Migrations(reprisepg.Config{})
	labtest.Must(t, err)
	schematest.NeverChange(t, list, "39ea3b35fc358b975be5749c459db60f43977afcb2389dfad5249db8ab59bd6e")
}

// pgBare returns a new schema without the tables.
func pgBare(t *testing.T) *pgFixture {
	t.Helper()
	f := pgSetup(t, servers.SharedPostgres(t), labtest.MaxConns(4))
	f.exec(t, "DROP SCHEMA "+f.Config.Schema+" CASCADE; CREATE SCHEMA "+f.Config.Schema)
	return f
}

// schema is that of the fixture.
func (f *pgFixture) schema(t *testing.T) *schematest.Schema {
	t.Helper()
	s := schematest.Of(t, func(log *slog.Logger) reprisepg.Config {
		return reprisepg.Config{Schema: f.Config.Schema, Logger: log, Accept: []string{"fsync"}} // which test servers run without
	}, reprisepg.Migrations, reprisepg.New[*sql.DB], reprisepg.Open[*sql.DB], reprisepg.Migrate[*sql.DB], reprisepg.SchemaVersion[*sql.DB])
	s.Dialect, s.Pool = goose.DialectPostgres, func() *sql.DB {
		return labtest.NewDB(t, f.Pool.Config().ConnString(), labtest.SessionParam("search_path", f.Config.Schema))
	}
	return s
}

func TestPostgresNextReleaseMigratesWhileThisOneRuns(t *testing.T) {
	t.Parallel()
	pgBare(t).schema(t).Rollout(t, reprisepg.SQLTx)
}

func TestPostgresTableOfAnotherProgramIsRefused(t *testing.T) {
	t.Parallel()
	pgBare(t).schema(t).Foreign(t)
}

func TestPostgresMigrationLetsOthersGoOn(t *testing.T) {
	t.Parallel()
	pgBare(t).schema(t).LetsOthersGoOn(t, "SELECT COUNT(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE 'ALTER TABLE%' || current_schema || '%'")
}

// TestPostgresAnotherToolMigrates: with goose; each direction is complete.
func TestPostgresAnotherToolMigrates(t *testing.T) {
	t.Parallel()
	f := pgBare(t)
	f.schema(t).AnotherTool(t)
	if n := pgValue[int](t, f.Pool, "SELECT count(*) FROM pg_proc WHERE pronamespace = $1::regnamespace", f.Config.Schema); n != 0 {
		t.Errorf("%d functions are left", n)
	}
}

// TestPostgresMigrateAtOnce: many processes may bring two tables of a schema up at the
// same time, whatever isolation the role has by default, over a pool and over a *sql.DB,
// also where the schema itself is missing.
func TestPostgresMigrateAtOnce(t *testing.T) {
	t.Parallel()
	server := servers.SharedPostgres(t)
	schema := "Migrate_" + pgSetup(t, server).Config.Schema
	for _, level := range []pgx.TxIsoLevel{pgx.ReadCommitted, pgx.RepeatableRead, pgx.Serializable} {
		option := labtest.SessionParam("default_transaction_isolation", string(level))
		pool := labtest.NewPool(t, server.URL(), option, labtest.MaxConns(10))
		db := labtest.NewDB(t, server.URL(), option, labtest.MaxConns(10))
		c := [2]reprisepg.Config{}
		for i := range c {
			c[i] = reprisepg.Config{Schema: schema + strings.ReplaceAll(string(level), " ", "_"), Table: []string{"reprise_records", "Orders"}[i]}
		}
		pgTogether(20, func(i int) {
			labtest.Want(t, "Migrate over pgx, "+string(level), reprisepg.Migrate(t.Context(), pool, c[i%2]), nil)
			labtest.Want(t, "Migrate over database/sql, "+string(level), reprisepg.Migrate(t.Context(), db, c[1-i%2]), nil)
		})
		for _, c := range c {
			pgLeasedLife(t, pgOn(pool, c).Leased(t))
			if v, err := reprisepg.SchemaVersion(t.Context(), pool, c); v != 1 || err != nil {
				t.Errorf("version %d, %v", v, err)
			}
		}
		if after := pgValue[string](t, pool, "SHOW transaction_isolation"); after != string(level) {
			t.Errorf("Migrate made the session %s", after)
		}
	}
}

// TestPostgresVanishedMigrationHoldsUpNoOther: for long, although the server does not see
// that the one which has the lock is gone.
func TestPostgresVanishedMigrationHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	f := pgBare(t)
	alone, resume := make(chan struct{}), make(chan struct{})
	var asked atomic.Bool
	slow := labtest.NewPool(t, f.Pool.Config().ConnString(), pgTrace(func(_ context.Context, _ *pgx.Conn, statement string) {
		if strings.Contains(statement, "CREATE TABLE") && asked.CompareAndSwap(false, true) {
			close(alone)
			<-resume
		}
	}).option)
	done := make(chan error, 1)
	go func() { done <- reprisepg.Migrate(t.Context(), slow, f.Config) }()
	<-alone
	err := reprisepg.Migrate(t.Context(), f.Pool, f.Config)
	close(resume)
	labtest.Must(t, err)
	if err := <-done; err == nil {
		t.Error("a migration went on behind another one")
	}
	pgLeasedLife(t, f.Leased(t))
}

// TestPostgresFunctionIsMissing: a schema without a function that this release calls, or
// with another one in its place, is refused with a remedy that helps.
func TestPostgresFunctionIsMissing(t *testing.T) {
	t.Parallel()
	f := pgSetup(t, servers.SharedPostgres(t))
	f.Config.Accept = []string{"fsync"}
	for _, change := range []string{"SELECT", "CREATE FUNCTION " + f.name("reprise_records_claims_v1") + "(bytea, bytea) RETURNS text LANGUAGE sql AS 'SELECT 1::text'"} {
		f.exec(t, "DROP FUNCTION "+f.name("reprise_records_claims_v1")+"; "+change)
		err := reprisepg.Migrate(t.Context(), f.Pool, f.Config)
		_, opened := reprisepg.Open(t.Context(), f.Pool, f.Config)
		for what, err := range map[string]error{"Migrate": err, "Open": opened} {
			labtest.Want(t, what, err, store.ErrMisconfigured)
			if !strings.Contains(err.Error(), "which Migrate does not mend: ERROR: function ") || !strings.Contains(err.Error(), "rename it, drop "+f.Config.Schema+".reprise_records_migrations and run Migrate") {
				t.Errorf("%s: %v", what, err)
			}
		}
		f.exec(t, "ALTER TABLE "+f.records()+" RENAME TO renamed; DROP TABLE "+f.name("reprise_records_migrations"))
		labtest.Must(t, reprisepg.Migrate(t.Context(), f.Pool, f.Config))
		_, err = reprisepg.Open(t.Context(), f.Pool, f.Config)
		labtest.Must(t, err)
		f.exec(t, "DROP TABLE "+f.name("renamed"))
	}
}
