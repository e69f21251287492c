// Package sqlitefile opens files of SQLite as docs/sqlite.md says to. The driver takes a
// minute to compile, so only what serves this store imports the package.
package sqlitefile

import (
	"context"
	"database/sql"
	"path/filepath"
	"testing"

	_ "modernc.org/sqlite" // the driver

	"github.com/reprise-go/reprise/core/store"
	reprisesqlite "github.com/reprise-go/reprise/store/sqlite"
)

// Settings are the parameters of the URL of a file.
const Settings = "?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=busy_timeout(5000)"

// Open opens a file with up to conns connections, or any number for 0.
func Open(file string, conns int) (*sql.DB, error) {
	db, err := sql.Open("sqlite", "file:"+filepath.ToSlash(file)+Settings)
	if err == nil {
		db.SetMaxOpenConns(conns)
		db.SetMaxIdleConns(max(conns, 4))
	}
	return db, err
}

// New returns the path of a new file with the table.
func New(tb testing.TB) string {
	tb.Helper()
	file := filepath.Join(tb.TempDir(), "records.db")
	if err := reprisesqlite.Migrate(context.WithoutCancel(tb.Context()), open(tb, file), reprisesqlite.Config{}); err != nil {
		tb.Fatal(err)
	}
	return file
}

// Leased returns the leased store over a file, as a process of its own has it.
func Leased(tb testing.TB, file string) store.Store {
	tb.Helper()
	st, err := reprisesqlite.New(open(tb, file), reprisesqlite.Config{})
	if err != nil {
		tb.Fatal(err)
	}
	return st
}

// Transactional returns the transactional store over a file, likewise.
func Transactional(tb testing.TB, file string) store.Store {
	tb.Helper()
	st, err := reprisesqlite.NewTransactional(open(tb, file), reprisesqlite.Config{})
	if err != nil {
		tb.Fatal(err)
	}
	return st
}

func open(tb testing.TB, file string) *sql.DB {
	tb.Helper()
	db, err := Open(file, 0)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = db.Close() })
	return db
}
