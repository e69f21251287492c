package servers_test

import (
	"testing"

	"github.com/reprise-go/reprise/servers"
)

// query runs SQL that has to succeed, and returns the first column of the first row.
func query(t *testing.T, s *servers.PostgresServer, sql string) string {
	t.Helper()
	rows, err := s.Exec(t.Context(), sql)
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) == 0 {
		return ""
	}
	return rows[0][0]
}

func TestPostgresStartsWithSettingsAndRecovers(t *testing.T) {
	t.Parallel()
	s := servers.StartPostgres(t, "max_connections=17")
	if got := query(t, s, "SHOW max_connections"); got != "17" {
		t.Errorf("max_connections is %s", got)
	}
	query(t, s, "CREATE TABLE t (n int)")
	for i, end := range []func(testing.TB){s.Crash, s.Kill, func(testing.TB) {}} {
		query(t, s, "INSERT INTO t VALUES (1)")
		end(t)
		if _, err := s.Exec(t.Context(), "SELECT 1"); (err != nil) != (i < 2) {
			t.Errorf("end %d: then a query returned %v", i, err)
		}
		s.Restart(t)
	}
	if got := query(t, s, "SELECT count(*) FROM t"); got != "3" {
		t.Errorf("after three ends %s of 3 rows are left", got)
	}
}

func TestPostgresSettingsChangeWhileItRuns(t *testing.T) {
	t.Parallel()
	s := servers.SharedPostgres(t)
	if other := servers.SharedPostgres(t); other != s {
		t.Errorf("shared servers at %s and %s", s.Addr(), other.Addr())
	}
	own := servers.StartPostgres(t)
	own.Set(t, "synchronous_commit=off", "log_line_prefix=it's ")
	if got := query(t, own, "SHOW synchronous_commit") + query(t, own, "SHOW log_line_prefix"); got != "offit's " {
		t.Errorf("settings are %q", got)
	}
	own.Set(t, "synchronous_commit=")
	if got := query(t, own, "SHOW synchronous_commit"); got != "on" {
		t.Errorf("reset setting is %s", got)
	}
	if _, err := own.Exec(t.Context(), "SELECT 1/0"); err == nil {
		t.Error("a failing statement has no error")
	}
}
