// Package sqlitefile has stores in files of SQLite for tests. The driver takes a minute
// to compile, so only those that serve the store import it.
package sqlitefile

import (
	"context"
	"database/sql"
	"path/filepath"
	"testing"

	"github.com/reprise-go/reprise/lab/serve"
	reprisesqlite "github.com/reprise-go/reprise/store/sqlite"
)

// New returns the path of a new file with the table.
func New(tb testing.TB) string {
	tb.Helper()
	file := filepath.Join(tb.TempDir(), "records.db")
	if err := reprisesqlite.Migrate(context.WithoutCancel(tb.Context()), open(tb, file), reprisesqlite.Config{}); err != nil {
		tb.Fatal(err)
	}
	return file
}

// Store returns the store over a file, as a separate process has it.
func Store(tb testing.TB, file string) *reprisesqlite.Store {
	tb.Helper()
	st, err := reprisesqlite.New(open(tb, file), reprisesqlite.Config{})
	if err != nil {
		tb.Fatal(err)
	}
	return st
}

func open(tb testing.TB, file string) *sql.DB {
	tb.Helper()
	db, err := serve.OpenFile(file, 0)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = db.Close() })
	return db
}
