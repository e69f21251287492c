package mysql

import (
	"io"
	"net"
	"sync/atomic"
	"testing"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/lab/serve/mysqlserver"
	reprisemysql "github.com/reprise-go/reprise/store/mysql"
)

// TestLostStatementsArePreparedAnew: after a reset of the session, which a proxy may
// cause, and after changes of the table.
func TestLostStatementsArePreparedAnew(t *testing.T) {
	t.Parallel()
	raw := newDatabase(t)
	var last atomic.Pointer[net.TCPConn]
	db := wrapped(t, raw, false, func(conn *net.TCPConn) net.Conn {
		last.Store(conn)
		return conn
	})
	db.SetMaxOpenConns(1)
	st := newStore(t, db, reprisemysql.Config{})
	reset := func() {
		t.Helper()
		_, err := last.Load().Write([]byte{1, 0, 0, 0, 0x1f}) // COM_RESET_CONNECTION
		labtest.Must(t, err)
		var ok [11]byte // an OK packet: a header, and seven bytes of which the first is 0
		if _, err = io.ReadFull(last.Load(), ok[:]); err != nil || ok[0] != 7 || ok[4] != 0 {
			t.Fatalf("the server answered the reset with %q, %v", ok, err)
		}
	}
	key := func() {
		t.Helper()
		r := labtest.Completed(t, st, body)
		labtest.WantClaim(t, st, labtest.Rival(r), store.Completed)
	}
	key()
	conn := last.Load()
	for name, lose := range map[string]func(){
		"a reset":                 reset,
		"a new column":            func() { mysqlserver.Exec(t, raw, "ALTER TABLE reprise_records ADD COLUMN later INT") },
		"another column in front": func() { mysqlserver.Exec(t, raw, "ALTER TABLE reprise_records ADD COLUMN first INT FIRST") },
	} {
		lose()
		if key(); last.Load() != conn {
			t.Errorf("%s: on another connection", name)
		}
	}
}
