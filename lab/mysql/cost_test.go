package mysql

import (
	"database/sql"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/lab/serve/mysqlserver"
	"github.com/reprise-go/reprise/servers"
	reprisemysql "github.com/reprise-go/reprise/store/mysql"
)

// body is a response of 256 bytes, with its content type and the protocol's overhead.
var body = strings.Repeat("p", 256+51)

// TestMySQLRoundTrips: a new operation is two round trips, and a replay two, or one while
// replays are common, whether the driver interpolates parameters or the statements are
// prepared, which they are at their first use on a connection. A handler's transaction
// prepares a session and restores it.
func TestMySQLRoundTrips(t *testing.T) {
	t.Parallel()
	for name, interpolate := range map[string]bool{"interpolated": true, "prepared": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			roundTrips(t, interpolate)
		})
	}
}

func roundTrips(t *testing.T, interpolate bool) {
	t.Helper()
	var trips labtest.Trips
	db := wrapped(t, newDatabase(t), interpolate, func(conn *net.TCPConn) net.Conn { return trips.Watch(conn) })
	leased := newStore(t, db, reprisemysql.Config{})
	effects := labtest.NewTxStore(leased)
	count := func(what string, want int64, operation func()) {
		t.Helper()
		do := func() { // and restores the session
			operation()
			labtest.Eventually(t, "the session is restored", func() bool { return db.Stats().InUse == 0 })
		}
		do() // connects
		before := trips.Count()
		do()
		if got := trips.Count() - before; got != want {
			t.Errorf("%s: %d round trips, want %d", what, got, want)
		}
	}
	var r store.ClaimRequest
	const effect = "INSERT INTO effects (name) VALUES ('one')"
	count("leased, new", 2, func() {
		r = labtest.Completed(t, leased, body)
	})
	replay := func() { labtest.WantClaim(t, leased, labtest.Rival(r), store.Completed) }
	count("leased, replay", 2, replay)
	count("a handler's own transaction", 3, func() {
		tx, err := db.BeginTx(t.Context(), nil)
		labtest.Must(t, err)
		labtest.Exec(t, tx, effect)
		labtest.Must(t, tx.Commit())
	})
	count("transactional, new, with the statement of the handler", 9, func() {
		r = labtest.NewClaim()
		a := begin(t, effects, r)
		labtest.Exec(t, a.Tx, effect)
		labtest.Must(t, labtest.Complete(t, effects, r, body))
	})
	for range 40 {
		replay()
	}
	count("a replay while replays are common", 1, replay)
}

// TestMySQLBytesOfAKey: how much of its files and of its log a new key takes. The
// server extends a table by a MiB, which is 260 bytes for each of these keys.
func TestMySQLBytesOfAKey(t *testing.T) {
	t.Parallel()
	labtest.Breadth(t, "tests with many records")
	server := servers.StartMariaDB(t)
	raw := mysqlserver.New(t, server)
	db := mysqlserver.Pool(t, raw, 0)
	leased := mysqlserver.Store(t, raw)
	const keys, mostLog, mostKept = 4000, 3000, 1500
	log, kept := logged(t, db), size(t, db)
	var filling sync.WaitGroup
	for range 8 {
		filling.Go(func() {
			for range keys / 8 {
				labtest.Completed(t, leased, body)
			}
		})
	}
	filling.Wait()
	log, kept = (logged(t, db)-log)/keys, (size(t, db)-kept)/keys
	t.Logf("%d bytes of the log and %d in the table", log, kept)
	if log > mostLog || kept > mostKept {
		t.Errorf("%d bytes of the log and %d in the table; want at most %d and %d", log, kept, mostLog, mostKept)
	}
}

// logged returns the position of the end of the server's log.
func logged(t *testing.T, db *sql.DB) (lsn int) {
	t.Helper()
	var name string
	labtest.Must(t, db.QueryRowContext(t.Context(), "SHOW GLOBAL STATUS LIKE 'Innodb_lsn_current'").Scan(&name, &lsn))
	return lsn
}

// size returns how many bytes the pages of the table and of its indexes take.
func size(t *testing.T, db *sql.DB) (n int) {
	t.Helper()
	labtest.Exec(t, db, "ANALYZE TABLE "+reprisemysql.DefaultTable)
	const query = "SELECT data_length + index_length FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name = ?"
	labtest.Must(t, db.QueryRowContext(t.Context(), query, reprisemysql.DefaultTable).Scan(&n))
	return n
}
