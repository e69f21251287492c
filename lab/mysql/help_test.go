package mysql

import (
	"database/sql"
	"sync"
	"testing"
	"time"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/lab/serve/mysqlserver"
	"github.com/reprise-go/reprise/servers"
	reprisemysql "github.com/reprise-go/reprise/store/mysql"
)

func TestMain(m *testing.M) { labtest.Main(m) }

// newDatabase returns the URL of a new database on the shared server, with a table of
// effects.
func newDatabase(tb testing.TB) string {
	tb.Helper()
	return withEffects(tb, servers.SharedMariaDB(tb))
}

func withEffects(tb testing.TB, s *servers.MariaDBServer) string {
	tb.Helper()
	raw := mysqlserver.New(tb, s)
	mysqlserver.Exec(tb, raw, "CREATE TABLE effects (id INT AUTO_INCREMENT PRIMARY KEY, name VARCHAR(64) NOT NULL)")
	return raw
}

// count returns the number that a query selects.
func count(tb testing.TB, raw, query string, args ...any) (n int) {
	tb.Helper()
	db := mysqlserver.Pool(tb, raw, 1)
	defer db.Close() // it may be one of many polls
	if err := db.QueryRowContext(tb.Context(), query, args...).Scan(&n); err != nil {
		tb.Fatalf("%s: %v", query, err)
	}
	return n
}

// asking is held by the one that asks for lock waits: InnoDB copies them into the
// information schema only if they were not read for 100 ms.
var asking sync.Mutex

// lockWaits returns how many statements in a database wait for a lock. The condition only
// begins with AND, if there is one.
func lockWaits(tb testing.TB, raw, only string) int {
	tb.Helper()
	asking.Lock()
	defer asking.Unlock()
	time.Sleep(110 * time.Millisecond) //nolint:forbidigo // see asking
	return count(tb, raw, "SELECT COUNT(*) FROM information_schema.processlist JOIN information_schema.innodb_trx ON trx_mysql_thread_id = id "+
		"WHERE db = DATABASE() AND trx_state = 'LOCK WAIT'"+only)
}

// wantEffects demands how many effects are committed.
func wantEffects(tb testing.TB, raw string, want int) {
	tb.Helper()
	if n := count(tb, raw, "SELECT COUNT(*) FROM effects"); n != want {
		tb.Errorf("%d effects, want %d", n, want)
	}
}

// writing returns a transaction of another client that has executed a statement.
func writing(tb testing.TB, raw, statement string, args ...any) *sql.Tx {
	tb.Helper()
	tx, err := mysqlserver.Pool(tb, raw, 1).BeginTx(tb.Context(), nil)
	labtest.Must(tb, err)
	tb.Cleanup(func() { _ = tx.Rollback() })
	labtest.Exec(tb, tx, statement, args...)
	return tx
}

// newStore returns the store over a pool.
func newStore(tb testing.TB, db *sql.DB, c reprisemysql.Config) *reprisemysql.Store {
	tb.Helper()
	st, err := reprisemysql.New(db, c)
	labtest.Must(tb, err)
	return st
}

// transactional opens the store over a pool, as a transactional policy uses it.
func transactional(tb testing.TB, db *sql.DB, c reprisemysql.Config) *labtest.TxStore {
	tb.Helper()
	return labtest.NewTxStore(newStore(tb, db, c))
}

// begin claims an operation in a database with a table of effects.
func begin(tb testing.TB, st *labtest.TxStore, r store.ClaimRequest) *labtest.Attempt {
	tb.Helper()
	return labtest.Begin(tb, st, r, reprisemysql.Tx)
}

// newLoad starts a process over each pool.
func newLoad(t *testing.T, transactional bool, pools ...*sql.DB) *labtest.Load {
	t.Helper()
	var stores []store.Store
	for _, db := range pools {
		stores = append(stores, newStore(t, db, reprisemysql.Config{}))
	}
	if !transactional {
		return labtest.NewLoad(t, nil, stores...)
	}
	return labtest.NewLoad(t, (&labtest.SQLHandlers{Tx: reprisemysql.Tx}).Write, stores...)
}
