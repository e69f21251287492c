package sqlite

import (
	"context"
	"database/sql"
	"path/filepath"
	"strings"
	"testing"

	_ "github.com/mattn/go-sqlite3" // the driver sqlite3
	_ "modernc.org/sqlite"          // the driver sqlite

	"github.com/reprise-go/reprise/servers"
	reprisesqlite "github.com/reprise-go/reprise/store/sqlite"
)

// driver is a driver of SQLite, and how a URL of it sets what the store wants.
type driver struct{ name, settings string }

var drivers = []driver{
	{"sqlite", "?_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)"},
	{"sqlite3", "?_busy_timeout=5000&_journal_mode=WAL&_synchronous=FULL"},
}

// settingsOf returns the settings of a driver by its name.
func settingsOf(name string) string {
	for _, d := range drivers {
		if d.name == name {
			return d.settings
		}
	}
	panic("sqlite: no driver " + name)
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
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = db.Close() })
	return db
}

// newFile returns the path of a database with the table.
func (d driver) newFile(tb testing.TB) string {
	tb.Helper()
	file := filepath.Join(tb.TempDir(), "records.db")
	if err := reprisesqlite.Migrate(context.WithoutCancel(tb.Context()), d.open(tb, file), reprisesqlite.Config{}); err != nil {
		tb.Fatal(err)
	}
	return file
}

// leased opens the leased store over a file.
func (d driver) leased(tb testing.TB, file string) *reprisesqlite.Store {
	tb.Helper()
	st, err := reprisesqlite.New(d.open(tb, file), reprisesqlite.Config{})
	if err != nil {
		tb.Fatal(err)
	}
	return st
}

// exec executes a statement on a file.
func (d driver) exec(tb testing.TB, file, statement string, args ...any) {
	tb.Helper()
	if _, err := d.open(tb, file).ExecContext(context.WithoutCancel(tb.Context()), statement, args...); err != nil {
		tb.Fatal(err)
	}
}

// transactional opens the transactional store over a file.
func (d driver) transactional(tb testing.TB, file string) *reprisesqlite.TransactionalStore {
	tb.Helper()
	st, err := reprisesqlite.NewTransactional(d.open(tb, file), reprisesqlite.Config{})
	if err != nil {
		tb.Fatal(err)
	}
	return st
}
