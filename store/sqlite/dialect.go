package reprisesqlite

import (
	"errors"
	"reflect"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/internal/sqlstore"
)

// dialect is SQLite's. It has no clock that its users share with finer steps than a
// millisecond, and the host's is the same for all of them.
var dialect = sqlstore.Dialect{
	Name:  "sqlite",
	Quote: func(name string) string { return `"` + name + `"` },
	Schema: []string{
		`CREATE TABLE IF NOT EXISTS {records} (
	id           BLOB    NOT NULL PRIMARY KEY,
	version      INTEGER NOT NULL, -- of the meaning of this row
	state        INTEGER NOT NULL, -- 1: in progress, 2: completed
	attempt      INTEGER NOT NULL,
	fence        INTEGER NOT NULL,
	revision     INTEGER NOT NULL, -- raised by every write
	owner        BLOB    NOT NULL, -- zero: an operator completed the record; with its bits inverted: see reason
	fingerprint  BLOB    NOT NULL,
	claimed_at   INTEGER NOT NULL, -- instants and durations are in microseconds
	lease_until  INTEGER NOT NULL, -- of a completed record: when it was completed
	replay_until INTEGER NOT NULL,
	valid_until  INTEGER NOT NULL,
	due_at       INTEGER NOT NULL, -- when a purge looks at the row
	at_most_once INTEGER NOT NULL,
	label        TEXT    NOT NULL,
	description  TEXT    NOT NULL,
	reason       TEXT    NOT NULL, -- why the outcome is unknown; empty unless its owner said so
	retention    INTEGER NOT NULL,
	horizon      INTEGER NOT NULL,
	payload      BLOB
)`,
		`CREATE INDEX IF NOT EXISTS {due} ON {records} (due_at)`,
	},
	Classify: classify,
}

// The result codes of SQLite that matter here, and the byte of an extended code that has
// them.
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

	primaryCode = 0xff
)

// classify is the sentinel of an error of the driver.
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

// resultCode finds the result code of SQLite in the error of a driver, whose package is
// not imported here: a method Code (modernc.org/sqlite, github.com/ncruces/go-sqlite3) or
// a field Code (github.com/mattn/go-sqlite3).
func resultCode(err error) (code int64, ok bool) {
	for ; err != nil; err = errors.Unwrap(err) {
		v := reflect.ValueOf(err)
		if m := v.MethodByName("Code"); m.IsValid() && m.Type().NumIn() == 0 && m.Type().NumOut() == 1 {
			v = m.Call(nil)[0]
		} else if v = reflect.Indirect(v); v.Kind() == reflect.Struct {
			v = v.FieldByName("Code")
		}
		switch {
		case v.IsValid() && v.CanInt():
			return v.Int() & primaryCode, true
		case v.IsValid() && v.CanUint():
			return int64(v.Uint() & primaryCode), true
		}
	}
	return 0, false
}
