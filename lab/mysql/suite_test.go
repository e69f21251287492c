package mysql

import (
	"testing"

	"github.com/reprise-go/reprise/conformance"
	"github.com/reprise-go/reprise/conformance/storetest"
	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/lab/serve/mysqlserver"
	"github.com/reprise-go/reprise/servers"
	reprisemysql "github.com/reprise-go/reprise/store/mysql"
)

// sessions are parameters of a URL that the store must not depend on: the count of rows
// that a change finds, prepared statements, isolation levels, time zones, sql_mode and
// character sets.
var sessions = []struct{ name, params string }{
	{"default", ""},
	{"serializable", "?tx_isolation='SERIALIZABLE'&sql_mode='ANSI_QUOTES,NO_BACKSLASH_ESCAPES'&time_zone='%2B05:30'&sql_safe_updates=1"},
	{"prepared", "?interpolateParams=false&clientFoundRows=true"},
	{"repeatable-read", "?tx_isolation='REPEATABLE-READ'&sql_mode=''&time_zone='-08:00'&charset=latin1"},
}

// onSessions runs a test on every kind of session, and with -short on the default and the
// one that locks most.
func onSessions(t *testing.T, test func(t *testing.T, params string)) {
	t.Helper()
	some := sessions
	if testing.Short() {
		some = some[:2]
	}
	for _, s := range some {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			test(t, s.params)
		})
	}
}

// TestMySQLConformance runs the suite once, in which the handles of a case have sessions
// of different kinds, and unless -short is set once more on each kind.
func TestMySQLConformance(t *testing.T) {
	t.Parallel()
	run := func(t *testing.T, params func(testing.TB, int) string) {
		t.Helper()
		storetest.Run(t, func(tb testing.TB) storetest.Fixture { return suite(tb, params) })
	}
	t.Run("mixed", func(t *testing.T) {
		t.Parallel()
		run(t, func(tb testing.TB, handle int) string {
			return sessions[(labtest.Draw(tb)+handle)%len(sessions)].params
		})
	})
	if testing.Short() {
		return
	}
	onSessions(t, func(t *testing.T, params string) {
		run(t, func(testing.TB, int) string { return params })
	})
}

// suite is the fixture of the store: two handles are two pools over one database, with
// the parameters of each handle.
func suite(tb testing.TB, params func(testing.TB, int) string) storetest.Fixture {
	tb.Helper()
	raw, handles := mysqlserver.New(tb, servers.SharedMariaDB(tb)), 0
	return storetest.Fixture{
		Open: func(inner testing.TB) store.Store {
			handles++
			return mysqlserver.Store(inner, raw+params(tb, handles))
		},
		Advance: conformance.Sleep,
		Corrupt: func(tb testing.TB, id store.ID, how storetest.Corruption) {
			tb.Helper()
			if how == storetest.WrongType {
				mysqlserver.Exec(tb, raw, "ALTER TABLE reprise_records MODIFY lease_until VARCHAR(20) NOT NULL")
			}
			mysqlserver.Exec(tb, raw, "UPDATE reprise_records SET revision = revision + 1, "+labtest.Damage[how]+" WHERE id = ?", id[:])
		},
		Effects: labtest.SQLEffects(tb, mysqlserver.Pool(tb, raw, 0), reprisemysql.Tx),
	}
}
