package wire

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// TestObserveNoticesNotesUnconfirmedCommits: the warning of the server about its standby
// is, and no other.
func TestObserveNoticesNotesUnconfirmedCommits(t *testing.T) {
	t.Parallel()
	c, err := pgx.ParseConfig("postgres://nobody@127.0.0.1:1/nothing")
	if err != nil {
		t.Fatal(err)
	}
	ObserveNotices(c)
	for routine, want := range map[string]bool{"SyncRepWaitForLSN": true, "exec_stmt_raise": false, "": false} {
		conn, err := pgconn.Construct(&pgconn.HijackedConn{Config: &c.Config, CustomData: map[string]any{}})
		if err != nil {
			t.Fatal(err)
		}
		c.OnNotice(conn, &pgconn.Notice{Severity: "WARNING", Code: "01000", Routine: routine})
		if _, noted := conn.CustomData()[noteUnconfirmed]; noted != want {
			t.Errorf("a notice of %q is noted: %t", routine, noted)
		}
	}
}
