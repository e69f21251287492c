package reprisesqlite

import (
	"context"
	"time"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/internal/sqlstore"
	"github.com/reprise-go/reprise/store/internal/sqltx"
)

// dialect is that of SQLite. Its clock is that of the host, which all users of the file
// share; SQLite's own has steps of a millisecond.
var dialect = sqlstore.Dialect{
	Name:     "sqlite",
	Embedded: true,
	Guard:    "(SELECT read_uncommitted FROM pragma_read_uncommitted) = 0", // it takes effect with cache=shared
	Tables: "SELECT t.name, '\"' || replace(t.name, '\"', '\"\"') || '\"' FROM sqlite_schema AS t WHERE t.type = 'table' AND " +
		"(SELECT COUNT(*) FROM pragma_table_info(t.name) AS c WHERE c.name IN " + sqlstore.TableColumns + ") = " + sqlstore.TableColumnsCount + " ORDER BY 1 LIMIT 10",
	Quote:    func(name string) string { return `"` + name + `"` },
	Steps:    steps,
	Versions: "CREATE TABLE IF NOT EXISTS {migrations} (version INTEGER NOT NULL PRIMARY KEY, applied_at TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP)",
	Alone: func(ctx context.Context, on sqlstore.Conn, _ string) error {
		_, err := on.Exec(ctx, "BEGIN IMMEDIATE")
		return err
	},
	Missing:     isError,
	DeleteDue:   "DELETE FROM {records} WHERE id IN (SELECT id FROM {records} WHERE {which} ORDER BY due_at LIMIT ?)",
	UpdateDue:   "UPDATE {records} SET {set} WHERE id IN (SELECT id FROM {records} WHERE {which} ORDER BY due_at LIMIT ?)",
	Insert:      "INSERT OR IGNORE INTO",
	Settings:    settings,
	Judge:       judge,
	Classify:    classify,
	Begin:       func(time.Duration) []string { return []string{"BEGIN IMMEDIATE"} },
	Undoes:      undoes,
	NoSavepoint: isError,
}

// isError reports whether a statement is in error: it names no table, or no savepoint.
func isError(err error) bool {
	code, ok := resultCode(err)
	return ok && code == codeError
}

// undoes reports whether a statement that failed has ended its transaction: SQLite rolls
// it back after some errors, such as a full disk or the end of a context. BEGIN fails in
// a transaction. After another error it was the handler that ended it: BEGIN then begins
// one without a savepoint, which is found out, and rolled back.
func undoes(on *sqltx.Session, err error) bool {
	_, open := on.Exec(context.Background(), "BEGIN")
	code, ok := resultCode(err)
	if open != nil || ok && code != codeNoMem && code != codeInterrupt && code != codeIOErr && code != codeFull {
		return false
	}
	_, _ = on.Exec(context.Background(), "ROLLBACK")
	return true
}

// The result codes of SQLite that matter here, and the mask for the byte of an extended
// code that has them.
const (
	codeError    = 1 // of the statement: such as no such table
	codePerm     = 3
	codeBusy     = 5
	codeLocked   = 6
	codeReadonly = 8
	codeCorrupt  = 11
	codeFull     = 13
	codeSchema   = 17
	codeNotADB   = 26

	codeNoMem, codeInterrupt, codeIOErr = 7, 9, 10

	primaryCode = 0xff
)

// classify returns the sentinel for an error of the driver.
func classify(err error, committing bool) error {
	code, ok := resultCode(err)
	switch {
	case ok && (code == codeBusy || code == codeLocked):
		return store.ErrBusy
	case ok && code == codeFull:
		return store.ErrFull
	case committing:
		return store.ErrUnknown
	case ok && (code == codeError || code == codePerm || code == codeReadonly || code == codeSchema || code == codeNotADB):
		return store.ErrMisconfigured
	case ok && code == codeCorrupt:
		return store.ErrCorrupt
	default:
		return store.ErrUnavailable
	}
}

// resultCode finds the result code of SQLite in the error of a driver, which has it in a
// method Code (modernc.org/sqlite, github.com/ncruces/go-sqlite3) or in a field Code
// (github.com/mattn/go-sqlite3).
func resultCode(err error) (code int64, ok bool) {
	code, ok = sqlstore.Code(err, "Code")
	return code & primaryCode, ok
}
