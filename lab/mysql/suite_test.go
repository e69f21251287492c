package mysql

import (
	"testing"

	"github.com/reprise-go/reprise/conformance"
	"github.com/reprise-go/reprise/conformance/storetest"
	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/serve/mysqlserver"
	"github.com/reprise-go/reprise/servers"
)

// sessions are parameters of a URL that the store must not depend on: the count of rows
// that a change finds, prepared statements, isolation levels, time zones and sql_mode.
var sessions = map[string]string{
	"default":         "",
	"prepared":        "?interpolateParams=false&clientFoundRows=true",
	"repeatable-read": "?tx_isolation='REPEATABLE-READ'&sql_mode=''&time_zone='-08:00'",
	"serializable":    "?tx_isolation='SERIALIZABLE'&sql_mode='ANSI_QUOTES,NO_BACKSLASH_ESCAPES'&time_zone='%2B05:30'",
}

func onSessions(t *testing.T, test func(t *testing.T, params string)) {
	t.Helper()
	for name, params := range sessions {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, params)
		})
	}
}

func TestMySQLConformance(t *testing.T) {
	t.Parallel()
	onSessions(t, func(t *testing.T, params string) {
		storetest.Run(t, func(tb testing.TB) storetest.Fixture {
			return suite(tb, params, mysqlserver.Leased)
		})
	})
}

func TestMySQLTransactionalConformance(t *testing.T) {
	t.Parallel()
	onSessions(t, func(t *testing.T, params string) {
		storetest.Run(t, func(tb testing.TB) storetest.Fixture {
			f := suite(tb, params, mysqlserver.Transactional)
			f.Atomic = true
			f.Waivers = inFlight
			return f
		})
	})
}

// inFlight is the promise that the transactional store cannot hold between processes.
var inFlight = []conformance.Waiver{{
	Case:   "claim-mismatch-in-flight",
	Says:   "answered in-progress",
	Reason: "the fingerprint of an attempt in another process is not visible before its transaction commits: 409 instead of 422 until then",
}}

// suite is the fixture of a store: two handles are two pools over one database.
func suite(tb testing.TB, params string, open func(testing.TB, string) store.Store) storetest.Fixture {
	tb.Helper()
	raw := mysqlserver.New(tb, servers.SharedMariaDB(tb))
	return storetest.Fixture{
		Open:    func(tb testing.TB) store.Store { return open(tb, raw+params) },
		Advance: conformance.Sleep,
		Corrupt: func(tb testing.TB, id store.ID, how storetest.Corruption) { corrupt(tb, raw, id, how) },
	}
}

// corrupt damages a row.
func corrupt(tb testing.TB, raw string, id store.ID, how storetest.Corruption) {
	tb.Helper()
	change := map[storetest.Corruption]string{
		storetest.UnknownVersion: "version = 2",
		storetest.UnknownState:   "state = 7, payload = NULL",
		storetest.Truncated:      "fingerprint = substr(fingerprint, 1, 31)",
	}[how]
	if how == storetest.WrongType {
		mysqlserver.Exec(tb, raw, "ALTER TABLE reprise_records MODIFY lease_until VARCHAR(20) NOT NULL")
		change = "lease_until = 'soon'"
	}
	mysqlserver.Exec(tb, raw, "UPDATE reprise_records SET revision = revision + 1, "+change+" WHERE id = ?", id[:])
}
