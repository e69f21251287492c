package sqlite

import (
	"context"
	"database/sql"
	"path/filepath"
	"strings"
	"testing"

	_ "github.com/mattn/go-sqlite3" // the driver sqlite3
	_ "modernc.org/sqlite"          // the driver sqlite

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/servers"
	reprisesqlite "github.com/reprise-go/reprise/store/sqlite"
)

func TestMain(m *testing.M) { labtest.Main(m) }

// driver is a driver of SQLite, and how a URL of it sets what the store wants.
type driver struct{ name, settings string }

var drivers = []driver{
	{"sqlite", "?_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)"},
	{"sqlite3", "?_busy_timeout=5000&_journal_mode=WAL&_synchronous=FULL"},
}

// onDrivers runs a test on each driver.
func onDrivers(t *testing.T, test func(*testing.T, driver)) {
	t.Helper()
	for _, d := range drivers {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			if err := d.open(t, filepath.Join(t.TempDir(), "any.db")).PingContext(t.Context()); err != nil {
				if servers.Required(t, "sqlite") || !strings.Contains(err.Error(), "cgo") {
					t.Fatal(err)
				}
				t.Skip(err) // github.com/mattn/go-sqlite3 needs a C compiler
			}
			test(t, d)
		})
	}
}

// open opens a file, until the test ends.
func (d driver) open(tb testing.TB, file string) *sql.DB {
	tb.Helper()
	db, err := sql.Open(d.name, "file:"+file+d.settings)
	labtest.Must(tb, err)
	tb.Cleanup(func() { _ = db.Close() })
	return db
}

// newFile returns the path of a database with the table.
func (d driver) newFile(tb testing.TB) string {
	tb.Helper()
	file := filepath.Join(tb.TempDir(), "records.db")
	labtest.Must(tb, reprisesqlite.Migrate(context.WithoutCancel(tb.Context()), d.open(tb, file), reprisesqlite.Config{}))
	return file
}

// store opens the store over a file, as a separate process has it.
func (d driver) store(tb testing.TB, file string) *reprisesqlite.Store {
	tb.Helper()
	st, err := reprisesqlite.New(d.open(tb, file), reprisesqlite.Config{})
	labtest.Must(tb, err)
	return st
}

// exec executes a statement on a file.
func (d driver) exec(tb testing.TB, file, statement string, args ...any) {
	tb.Helper()
	if _, err := d.open(tb, file).ExecContext(context.WithoutCancel(tb.Context()), statement, args...); err != nil {
		tb.Fatal(err)
	}
}

// begin claims an operation in a file with a table of effects.
func begin(tb testing.TB, st *labtest.TxStore, r store.ClaimRequest) *labtest.Attempt {
	tb.Helper()
	return labtest.Begin(tb, st, r, reprisesqlite.Tx)
}

// withEffects returns a file with a table of effects.
func (d driver) withEffects(tb testing.TB) string {
	tb.Helper()
	file := d.newFile(tb)
	d.exec(tb, file, "CREATE TABLE effects (name TEXT NOT NULL)")
	return file
}

// wantEffects demands how many effects are committed.
func (d driver) wantEffects(tb testing.TB, file string, want int) {
	tb.Helper()
	var got int
	if err := d.open(tb, file).QueryRowContext(tb.Context(), "SELECT count(*) FROM effects").Scan(&got); err != nil || got != want {
		tb.Errorf("%d effects, %v; want %d", got, err, want)
	}
}
