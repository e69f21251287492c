package postgres

import (
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/servers"
	reprisepg "github.com/reprise-go/reprise/store/postgres"
)

// TestPostgresMigrateAtOnceUnderAnyDefault: many processes may bring the schema up at the
// same time, whatever isolation the role has by default, over a pool, a connection and a
// *sql.DB.
func TestPostgresMigrateAtOnceUnderAnyDefault(t *testing.T) {
	t.Parallel()
	server := servers.SharedPostgres(t)
	f := pgSetup(t, server)
	for _, level := range []pgx.TxIsoLevel{pgx.RepeatableRead, pgx.Serializable} {
		option := labtest.SessionParam("default_transaction_isolation", string(level))
		pool := labtest.NewPool(t, server.URL(), option, labtest.MaxConns(10))
		db := labtest.NewDB(t, server.URL(), option, labtest.MaxConns(10))
		c := reprisepg.Config{Schema: f.Config.Schema, Table: strings.ReplaceAll(string(level), " ", "_")}
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() { pgCheck(t, "Migrate, "+string(level), reprisepg.Migrate(t.Context(), pool, c)) })
			wg.Go(func() { pgCheck(t, "MigrateSQL, "+string(level), reprisepg.MigrateSQL(t.Context(), db, c)) })
		}
		wg.Wait()
		pgLeasedLife(t, pgOn(f.Pool, c).Leased(t))
		if after := pgValue[string](t, pool, "SHOW transaction_isolation"); after != string(level) {
			t.Errorf("Migrate made the session %s", after)
		}
	}
}

func pgCheck(t *testing.T, what string, err error) {
	t.Helper()
	if err != nil {
		t.Errorf("%s: %v", what, err)
	}
}

// TestPostgresMigrateNamesTheRightItLacks: a role that may run the stores and not create
// tables learns which right a migration needs.
func TestPostgresMigrateNamesTheRightItLacks(t *testing.T) {
	t.Parallel()
	server := servers.SharedPostgres(t)
	f := pgSetup(t, server)
	role := "role_" + f.Config.Schema
	f.exec(t, "CREATE ROLE "+role+" LOGIN PASSWORD 'secret'; GRANT USAGE ON SCHEMA "+f.Config.Schema+" TO "+role)
	t.Cleanup(func() { f.exec(t, "DROP OWNED BY "+role+"; DROP ROLE "+role) })
	u, err := url.Parse(server.URL())
	pgWant(t, "url", err, nil)
	u.User = url.UserPassword(role, "secret")
	pool := labtest.NewPool(t, u.String())
	for _, test := range []struct {
		c    reprisepg.Config
		want string
	}{
		{reprisepg.Config{Schema: f.Config.Schema, Table: "another"}, `GRANT CREATE ON SCHEMA "` + f.Config.Schema + `" TO "` + role + `"`},
		{reprisepg.Config{Schema: f.Config.Schema + "_x"}, "GRANT CREATE ON DATABASE"},
		{f.Config, `GRANT SELECT ON "` + f.Config.Schema + `"."reprise_records_migrations" TO "` + role + `"`},
	} {
		err := reprisepg.Migrate(t.Context(), pool, test.c)
		pgWant(t, "Migrate", err, store.ErrMisconfigured)
		if !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "reprisepg.Grants") {
			t.Errorf("%v: want %q", err, test.want)
		}
	}
}
