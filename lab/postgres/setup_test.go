package postgres

import (
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"

	"github.com/jackc/pgx/v5"
	"github.com/reprise-go/reprise/servers"
	reprisepg "github.com/reprise-go/reprise/store/postgres"
)

// TestPostgresLeastPrivileges: a role with the rights of Grants runs both stores, and
// cannot change the schema: it learns which right a migration needs.
func TestPostgresLeastPrivileges(t *testing.T) {
	t.Parallel()
	server := servers.SharedPostgres(t)
	f := pgSetup(t, server)
	limited := f.limited(t, server)
	role := limited.Pool.Config().ConnConfig.User
	f.exec(t, "CREATE TABLE "+f.name("effects")+" (n integer); GRANT USAGE ON SCHEMA "+f.Config.Schema+" TO "+role+
		"; GRANT SELECT, INSERT ON "+f.name("effects")+" TO "+role)
	_, err := limited.Leased(t).Claim(t.Context(), labtest.NewClaim())
	labtest.Want(t, "claim without privileges", err, store.ErrMisconfigured)
	if got := pgFinding(t, limited.Leased(t), "schema"); !strings.Contains(got.Detail, "permission denied") || !strings.Contains(got.Detail, "what reprisepg.Grants returns") {
		t.Errorf("check without privileges finds %+v", got)
	}

	grants, err := reprisepg.Grants(f.Config, role)
	labtest.Must(t, err)
	f.exec(t, grants+"REVOKE DELETE ON "+f.records()+" FROM "+role)
	if got := pgFinding(t, limited.Leased(t), "privileges"); !strings.Contains(got.Detail, "lacks DELETE on") {
		t.Errorf("check without one privilege finds %+v", got)
	}
	f.exec(t, grants)
	labtest.Must(t, reprisepg.Migrate(t.Context(), limited.Pool, f.Config))
	limited.finds(t, "a role with the privileges")
	pgLeasedLife(t, limited.Leased(t))
	pgTransactionalLife(t, limited, limited.Transactional(t))
	for _, forbidden := range []string{
		"CREATE TABLE " + f.name("mine") + " (n integer)", "ALTER TABLE " + f.records() + " SET (fillfactor = 50)",
		"TRUNCATE " + f.records(), "DROP TABLE " + f.records(), "INSERT INTO " + f.name("reprise_records_migrations") + " VALUES (2)",
	} {
		if _, err := limited.Pool.Exec(t.Context(), forbidden); err == nil {
			t.Errorf("the role can %s", forbidden)
		}
	}
	const asOwner = "migrate as the owner of the tables, or with a role that has CREATE on the schema"
	for denied, c := range map[string]reprisepg.Config{
		"for schema " + f.Config.Schema: {Schema: f.Config.Schema, Table: "another"}, "for database": {Schema: f.Config.Schema + "_x"},
	} {
		err := reprisepg.Migrate(t.Context(), limited.Pool, c)
		labtest.Want(t, "Migrate", err, store.ErrMisconfigured)
		if !strings.Contains(err.Error(), "permission denied "+denied) || !strings.Contains(err.Error(), asOwner) {
			t.Errorf("%v: want %q and %q", err, denied, asOwner)
		}
	}
}

// limited returns the fixture as a role sees it that has no privilege on its schema.
func (f *pgFixture) limited(t *testing.T, server *servers.PostgresServer) *pgFixture {
	t.Helper()
	role := "role_" + f.Config.Schema
	f.exec(t, "CREATE ROLE "+role+" LOGIN PASSWORD 'secret'; REVOKE ALL ON SCHEMA public FROM "+role)
	t.Cleanup(func() { f.exec(t, "DROP OWNED BY "+role+"; DROP ROLE "+role) })
	u, err := url.Parse(server.URL())
	labtest.Must(t, err)
	u.User = url.UserPassword(role, "secret")
	return pgOn(labtest.NewPool(t, u.String()), f.Config)
}

// TestPostgresCheckFindings: each setting that breaks a guarantee is noticed.
func TestPostgresCheckFindings(t *testing.T) {
	t.Parallel()
	server := servers.StartPostgres(t)
	f := pgSetup(t, server)
	with := func(url string, option labtest.PoolOption) *pgFixture {
		return pgOn(labtest.NewPool(t, url, option), f.Config)
	}
	f.finds(t, "a server in order")
	for code, option := range map[string]labtest.PoolOption{
		"synchronous-commit": labtest.SessionParam("synchronous_commit", "off"),
		"isolation":          labtest.SessionParam("default_transaction_isolation", "repeatable read"),
		"read-only":          labtest.SessionParam("default_transaction_read_only", "on"),
	} {
		with(server.URL(), option).finds(t, code, code)
	}
	f.exec(t, "ALTER TABLE "+f.records()+" SET UNLOGGED")
	f.finds(t, "an unlogged table", "unlogged")
	f.exec(t, "ALTER TABLE "+f.records()+" SET LOGGED, SET (autovacuum_enabled = off)")
	f.finds(t, "a table without autovacuum", "autovacuum")
	f.exec(t, "ALTER TABLE "+f.records()+" RESET (autovacuum_enabled)")

	server.Set(t, "full_page_writes=off")
	standby := server.StartStandby(t)
	server.Set(t, "synchronous_standby_names=*")
	standby.AwaitSynchronous(t)
	if all, err := f.Leased(t).Check(t.Context()); err != nil || !slices.ContainsFunc(all, func(f store.Finding) bool { return f.Code == "fsync" }) {
		t.Errorf("check of a server without fsync finds %v, %v", all, err)
	}
	with(server.URL(), labtest.MaxConns(2)).finds(t, "a server with a standby", "full-page-writes", "notices")
	with(server.URL(), pgObserve).finds(t, "a pool that observes notices", "full-page-writes")
	if got := pgFinding(t, with(standby.URL(), labtest.MaxConns(2)).Leased(t), "in-recovery"); got.Code == "" {
		t.Error("check of a standby does not find it")
	}
}

// TestPostgresBehindPgBouncer: both stores work behind a pooler in transaction mode, over
// fewer connections than clients; with the mode of pgx that does not, the check says so.
func TestPostgresBehindPgBouncer(t *testing.T) {
	t.Parallel()
	server := servers.SharedPostgres(t)
	bouncer := server.StartPgBouncer(t, "default_pool_size=8")
	f := pgSetup(t, server)
	f.exec(t, "CREATE TABLE "+f.name("effects")+" (n integer)")
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol} {
		pooled := pgOn(labtest.NewPool(t, bouncer.URL(), labtest.ExecMode(mode), labtest.MaxConns(20)), f.Config)
		pooled.finds(t, mode.String())
		another := reprisepg.Config{Schema: f.Config.Schema, Table: strings.ReplaceAll(mode.String(), " ", "_")}
		pgTogether(8, func(int) { labtest.Must(t, reprisepg.Migrate(t.Context(), pooled.Pool, another)) })
		pgLeasedLife(t, pgOn(pooled.Pool, another).Leased(t))
		pgLeasedLife(t, pooled.Leased(t))
		f.exec(t, "TRUNCATE "+f.records()+", "+f.name("effects"))
		pgTransactionalLife(t, pooled, pooled.Transactional(t))
		f.exec(t, "TRUNCATE "+f.records()+", "+f.name("effects"))
		db := labtest.NewDB(t, bouncer.URL(), labtest.ExecMode(mode))
		pgTxOnce(t, pooled.transactionalSQL(t, db))
		f.exec(t, "TRUNCATE "+f.records())
	}
	caching := pgOn(labtest.NewPool(t, bouncer.URL(), labtest.ExecMode(pgx.QueryExecModeCacheStatement)), f.Config)
	caching.finds(t, "a pool that caches statements", "statement-cache")
	st := caching.Leased(t) // it sends them unprepared where the pooler loses them, alone and in batches
	pgLeasedLife(t, st)
	for range 5 {
		pgTogether(manyCallers, func(int) {
			r := labtest.Completed(t, st, pgBody)
			labtest.WantClaim(t, st, labtest.Rival(r), store.Completed)
		})
	}
}
