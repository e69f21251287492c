package reprisesqlite

import (
	"context"
	"database/sql"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/internal/sqlstore"
)

// Migrations returns every step of the schema for c, in order. The statements of each
// belong in one transaction. The error wraps ErrInvalid.
func Migrations(c Config) ([]store.Migration, error) { return dialect.Migrations(c.options()) }

// Migrate brings the table up to the version of this release, in one transaction. Any
// number of processes may call it at once, while others use the table: one does the work,
// and the rest wait until ctx ends. It does not change the journal mode, which applies to
// the whole file: open the database with WAL, as the package comment shows.
//
// Migrate leaves a schema that is newer than this release as it is, and warns
// [Config.Logger]: a process of this release may restart while the next one is rolled
// out. If this release cannot read the table then, the error is ErrMisconfigured.
func Migrate(ctx context.Context, db *sql.DB, c Config) error {
	return dialect.Migrate(ctx, db, c.options())
}

// SchemaVersion returns the version of the schema of c: the Version of the last
// [store.Migration] that was applied. 0 means that there is none.
func SchemaVersion(ctx context.Context, db *sql.DB, c Config) (int, error) {
	return dialect.Version(ctx, db, c.options())
}

// steps are the steps of the schema.
var steps = []sqlstore.Step{{
	Name: "records",
	Up: []string{
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
		"CREATE INDEX IF NOT EXISTS {due} ON {records} (due_at)",
	},
	Down: []string{"DROP TABLE {records}"},
}}
