package reprisepg

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// TestObserveNoticesNotesUnconfirmedCommits: the warning of the server about its standby
// is, and no other. The application's own hooks are called as before, and their errors
// count.
func TestObserveNoticesNotesUnconfirmedCommits(t *testing.T) {
	t.Parallel()
	c, err := pgx.ParseConfig("postgres://nobody@127.0.0.1:1/nothing")
	if err != nil {
		t.Fatal(err)
	}
	heard, refused := 0, errors.New("refused")
	c.OnNotice = func(*pgconn.PgConn, *pgconn.Notice) { heard++ }
	c.AfterConnect = func(context.Context, *pgconn.PgConn) error { return refused }
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
		if err := c.AfterConnect(t.Context(), conn); !errors.Is(err, refused) {
			t.Errorf("a connection that the application refused: %v", err)
		}
	}
	if heard != 3 {
		t.Errorf("the application heard %d notices of 3", heard)
	}
}
