package postgres

import (
	"net/url"
	"strings"
	"testing"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/servers"
	reprisepg "github.com/reprise-go/reprise/store/postgres"
)

// TestPostgresOpens: on a server that keeps its promises every constructor that checks
// refuses an incomplete schema, names the missing part, and returns a store once it
// exists. It refuses a server that the catalogue shows in order and that refuses an
// operation, or does it wrongly, with the remedy. The trial leaves no row.
func TestPostgresOpens(t *testing.T) {
	t.Parallel()
	server := servers.StartPostgres(t, "fsync=on")
	f := pgOn(labtest.NewPool(t, server.URL()), reprisepg.Config{Schema: "opened"})
	opens := func(what, url, want string) {
		t.Helper()
		pool, db := labtest.NewPool(t, url, labtest.MaxConns(10)), labtest.NewDB(t, url, labtest.MaxConns(10))
		for name, open := range map[string]func() (*reprisepg.Store, error){
			"pgx":          func() (*reprisepg.Store, error) { return reprisepg.Open(t.Context(), pool, f.Config) },
			"database/sql": func() (*reprisepg.Store, error) { return reprisepg.Open(t.Context(), db, f.Config) },
		} {
			st, err := open()
			if n := pool.Stat().AcquiredConns(); n != 0 || db.Stats().InUse != 0 {
				t.Errorf("%s: %s: %d and %d connections are still out", what, name, n, db.Stats().InUse)
			}
			if want != "" {
				if labtest.Want(t, what+": "+name, err, store.ErrMisconfigured); !strings.Contains(err.Error(), want) {
					t.Errorf("%s: %s: %v; want %q in it", what, name, err, want)
				}
				continue
			}
			labtest.Want(t, what+": "+name, err, nil)
			if n := pgValue[int](t, f.Pool, "SELECT count(*) FROM "+f.records()); n != 0 {
				t.Errorf("%s: %s: the trial left %d rows", what, name, n)
			}
			r := labtest.Completed(t, st, "answer")
			labtest.WantClaim(t, st, labtest.Rival(r), store.Completed)
			f.exec(t, "TRUNCATE "+f.records())
		}
	}
	opens("without a schema", server.URL(), "does not exist or has no version; run Migrate")
	_, err := f.Leased(t).Claim(t.Context(), labtest.NewClaim())
	labtest.Want(t, "claim without a schema", err, store.ErrMisconfigured)
	if remedy := "Migrate, or apply what "; !strings.Contains(err.Error(), remedy) {
		t.Errorf("the error of a claim leaves it out to migrate: %v", err)
	}
	labtest.Must(t, reprisepg.Migrate(t.Context(), labtest.NewDB(t, server.URL()), f.Config))
	_, err = reprisepg.Open(t.Context(), labtest.NewPool(t, server.URL(), labtest.MaxConns(1)), f.Config)
	labtest.Must(t, err)

	f.exec(t, "CREATE ROLE app LOGIN")
	grants, err := reprisepg.Grants(f.Config, "app")
	labtest.Must(t, err)
	f.exec(t, grants)
	app, err := url.Parse(server.URL())
	labtest.Must(t, err)
	app.User = url.User("app")
	table := f.records()
	secured := "ALTER TABLE " + table + " ENABLE ROW LEVEL SECURITY; "
	for _, test := range []struct{ name, breaks, want string }{ // an empty want: the store does without
		{"as migrated", "SELECT", ""},
		{
			"row-level security without a policy", secured,
			"with row-level security a policy that allows it every row; row-level security applies to this role: CREATE POLICY",
		},
		{
			"a policy without deletion", secured + "CREATE POLICY p ON " + table + " FOR INSERT TO app WITH CHECK (true); " +
				"CREATE POLICY q ON " + table + " FOR SELECT TO app USING (true); CREATE POLICY r ON " + table + " FOR UPDATE TO app USING (true)",
			"CREATE POLICY",
		},
		{"a policy that allows every row", secured + "CREATE POLICY s ON " + table + " TO app USING (true) WITH CHECK (true)", ""},
		{
			"a trigger that drops updates",
			"CREATE FUNCTION " + f.name("drops") + "() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'; " +
				"CREATE TRIGGER drops BEFORE UPDATE OR INSERT ON " + table + " FOR EACH ROW EXECUTE FUNCTION " + f.name("drops") + "()",
			"trying to claim",
		},
	} {
		f.exec(t, test.breaks)
		opens(test.name, app.String(), test.want)
		f.exec(t, "TRUNCATE "+table) // the role may write rows that it may not delete
	}
}
