package servers_test

import (
	"context"
	"testing"
	"time"

	"github.com/reprise-go/reprise/servers"
)

func TestStandbyStreamsHoldsCommitsAndIsPromoted(t *testing.T) {
	t.Parallel()
	primary := servers.StartPostgres(t)
	query(t, primary, "CREATE TABLE t (n int)")
	standby := primary.StartStandby(t)
	query(t, primary, "INSERT INTO t VALUES (1)")
	count := func(s *servers.PostgresServer) string { return query(t, s, "SELECT count(*) FROM t") }
	eventually(t, patient, "the standby has the row", func() bool { return count(standby.PostgresServer) == "1" })
	if got := query(t, standby.PostgresServer, "SELECT pg_is_in_recovery()"); got != "t" {
		t.Errorf("in recovery: %s", got)
	}

	primary.Set(t, "synchronous_standby_names=*")
	standby.AwaitSynchronous(t)
	query(t, primary, "INSERT INTO t VALUES (2)")
	standby.Link.Set(t, servers.Refuse)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := primary.Exec(ctx, "INSERT INTO t VALUES (3)"); err == nil {
		t.Error("a commit did not wait for the synchronous standby")
	}
	standby.Link.Set(t, servers.Forward)
	eventually(t, patient, "the standby has the held row", func() bool { return count(standby.PostgresServer) == "3" })

	primary.Kill(t)
	standby.Promote(t)
	query(t, standby.PostgresServer, "INSERT INTO t VALUES (4)")
	if got := count(standby.PostgresServer); got != "4" {
		t.Errorf("%s rows after the promotion", got)
	}
	standby.Restart(t)
	if got := query(t, standby.PostgresServer, "SELECT pg_is_in_recovery()"); got != "f" {
		t.Errorf("after a restart it is in recovery: %s", got)
	}
}

func TestPgBouncerPoolsByItsMode(t *testing.T) {
	t.Parallel()
	s := servers.StartPostgres(t)
	tests := []struct {
		name     string
		settings []string
		leaks    bool // a client's session settings stay for the next
	}{
		{"transaction by default", nil, true},
		{"session", []string{"pool_mode=session"}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := s.StartPgBouncer(t, append(tt.settings, "default_pool_size=1")...)
			through := func(sql string) string {
				t.Helper()
				rows, err := b.Exec(t.Context(), sql)
				if err != nil {
					t.Fatal(err)
				}
				if len(rows) == 0 {
					return ""
				}
				return rows[0][0]
			}
			through("SET statement_timeout = 77777")
			if got := through("SHOW statement_timeout"); (got == "77777ms") != tt.leaks {
				t.Errorf("the next client has a statement_timeout of %s", got)
			}

			b.Pause(t)
			ctx, cancel := context.WithTimeout(t.Context(), impatient)
			defer cancel()
			if _, err := b.Exec(ctx, "SELECT 1"); err == nil {
				t.Error("a paused pool answered")
			}
			b.Kill(t)
			if listens(t, b.Addr()) {
				t.Error("a killed pool listens")
			}
			b.Restart(t)
			if got := through("SELECT 1"); got != "1" {
				t.Errorf("after the restart SELECT 1 is %q", got)
			}
		})
	}
}
