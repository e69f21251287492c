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

// TestPostgresOpenTriesEveryOperation: a server that the catalogue shows in order and
// that refuses an operation, or does it wrongly, is refused by Open, with the remedy. The
// trial leaves no row.
func TestPostgresOpenTriesEveryOperation(t *testing.T) {
	t.Parallel()
	server := servers.StartPostgres(t, "fsync=on")
	f := pgSetup(t, server)
	f.exec(t, "CREATE ROLE app LOGIN")
	grants, err := reprisepg.Grants(f.Config, "app")
	labtest.Must(t, err)
	f.exec(t, grants)
	u, err := url.Parse(server.URL())
	labtest.Must(t, err)
	u.User = url.User("app")

	table := f.records()
	for _, test := range []struct {
		name          string
		breaks, heals string
		leased        string // part of the error; empty: the leased store does without
	}{
		{name: "as migrated"},
		{
			"row-level security without a policy",
			"ALTER TABLE " + table + " ENABLE ROW LEVEL SECURITY", "ALTER TABLE " + table + " DISABLE ROW LEVEL SECURITY",
			"a policy of row-level security that allows it every row; row-level security applies to this role: CREATE POLICY",
		},
		{
			"a policy that hides rows",
			"ALTER TABLE " + table + " ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON " + table + " FOR INSERT TO app WITH CHECK (true)",
			"ALTER TABLE " + table + " DISABLE ROW LEVEL SECURITY; DROP POLICY p ON " + table,
			"CREATE POLICY",
		},
		{
			"a policy without deletion",
			"ALTER TABLE " + table + " ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON " + table + " FOR INSERT TO app WITH CHECK (true); " +
				"CREATE POLICY q ON " + table + " FOR SELECT TO app USING (true); CREATE POLICY r ON " + table + " FOR UPDATE TO app USING (true)",
			"ALTER TABLE " + table + " DISABLE ROW LEVEL SECURITY; DROP POLICY p ON " + table + "; DROP POLICY q ON " + table + "; DROP POLICY r ON " + table,
			"CREATE POLICY",
		},
		{
			"a policy that allows every row",
			"ALTER TABLE " + table + " ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON " + table + " TO app USING (true) WITH CHECK (true)",
			"ALTER TABLE " + table + " DISABLE ROW LEVEL SECURITY; DROP POLICY p ON " + table,
			"",
		},
		{
			"a trigger that drops updates",
			"CREATE FUNCTION " + f.name("drops") + "() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'; " +
				"CREATE TRIGGER drops BEFORE UPDATE OR INSERT ON " + table + " FOR EACH ROW EXECUTE FUNCTION " + f.name("drops") + "()",
			"DROP TRIGGER drops ON " + table,
			"trying to claim",
		},
	} {
		if test.breaks != "" {
			f.exec(t, test.breaks)
		}
		app, db := labtest.NewPool(t, u.String(), labtest.MaxConns(10)), labtest.NewDB(t, u.String(), labtest.MaxConns(10))
		_, leased := reprisepg.Open(t.Context(), app, f.Config)
		_, leasedSQL := reprisepg.OpenSQL(t.Context(), db, f.Config)
		for _, got := range []struct {
			name string
			err  error
			want string
		}{
			{"Open", leased, test.leased},
			{"OpenSQL", leasedSQL, test.leased},
		} {
			what := test.name + ": " + got.name
			if got.want == "" {
				labtest.Want(t, what, got.err, nil)
				continue
			}
			labtest.Want(t, what, got.err, store.ErrMisconfigured)
			if got.err != nil && !strings.Contains(got.err.Error(), got.want) {
				t.Errorf("%s: %v; want %q in it", what, got.err, got.want)
			}
		}
		if test.heals != "" {
			f.exec(t, test.heals)
		}
		if strings.Contains(test.heals, "DROP POLICY") && test.leased != "" {
			f.exec(t, "TRUNCATE "+table) // the role may write rows that it may not delete
		}
		if n := pgValue[int](t, f.Pool, "SELECT count(*) FROM "+table); n != 0 {
			t.Errorf("%s: the trial left %d rows", test.name, n)
		}
		if n := app.Stat().AcquiredConns(); n != 0 || db.Stats().InUse != 0 {
			t.Errorf("%s: %d and %d connections are still out", test.name, n, db.Stats().InUse)
		}
	}
}
