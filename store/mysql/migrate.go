package reprisemysql

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/internal/sqlstore"
)

// Migrations returns every step of the schema for c, in order. The statements of each
// commit one by one, so another tool that stops within a step leaves it to [Migrate] to
// complete it. The error wraps ErrInvalid.
func Migrations(c Config) ([]store.Migration, error) { return dialect.Migrations(sqlstore.Options(c)) }

// Migrate brings the table up to the version of this release. Any number of processes may
// call it at once, while others use the table: one does the work, and the rest wait until
// ctx ends. It completes what a process that died, or another tool, left undone. It needs
// the privileges CREATE and ALTER on the table, and those of the store; if the schema has
// the version of this release, only the latter.
//
// Migrate leaves a schema that is newer than this release as it is, and warns
// [Config.Logger]: a process of this release may restart while the next one is rolled
// out. If this release cannot read the table then, the error is ErrMisconfigured.
func Migrate(ctx context.Context, db *sql.DB, c Config) error {
	return dialect.Migrate(ctx, db, sqlstore.Options(c))
}

// SchemaVersion returns the version of the schema of c: the Version of the last
// [store.Migration] that was applied. 0 means that there is none.
func SchemaVersion(ctx context.Context, db *sql.DB, c Config) (int, error) {
	return dialect.Version(ctx, db, sqlstore.Options(c))
}

// steps are the steps of the schema. A statement commits at once, so each can be executed
// again, or then fails with an error of a column or index that exists or is gone. The
// clauses of one ALTER TABLE take effect together.
//
// No column is a text, so that no collation or character set changes a value; and each is
// long enough for its longest value, so that no sql_mode truncates one.
var steps = []sqlstore.Step{{
	Name: "records",
	Up: []string{`CREATE TABLE IF NOT EXISTS {records} (
	id           BINARY(32)     NOT NULL PRIMARY KEY,
	version      SMALLINT       NOT NULL COMMENT 'of the meaning of this row',
	state        SMALLINT       NOT NULL COMMENT '1: in progress, 2: completed',
	attempt      INT            NOT NULL,
	fence        BIGINT         NOT NULL,
	revision     BIGINT         NOT NULL COMMENT 'raised by every write',
	owner        VARBINARY(16)  NOT NULL COMMENT 'zero: an operator completed the record; with its bits inverted: see reason',
	fingerprint  VARBINARY(32)  NOT NULL,
	claimed_at   BIGINT         NOT NULL COMMENT 'instants and durations are in microseconds',
	lease_until  BIGINT         NOT NULL COMMENT 'of a completed record: when it was completed',
	replay_until BIGINT         NOT NULL,
	valid_until  BIGINT         NOT NULL,
	due_at       BIGINT         NOT NULL COMMENT 'when a purge looks at the row',
	at_most_once SMALLINT       NOT NULL,
	label        VARBINARY(32)  NOT NULL,
	description  VARBINARY(255) NOT NULL,
	reason       VARBINARY(255) NOT NULL COMMENT 'why the outcome is unknown; empty unless its owner said so',
	retention    BIGINT         NOT NULL,
	horizon      BIGINT         NOT NULL,
	payload      LONGBLOB,
	KEY {due} (due_at)
) ENGINE = InnoDB`},
	Down: []string{"DROP TABLE IF EXISTS {records}"},
}}

// alone takes the lock of those who migrate a table, which the session has until its end.
// The server ends the session of a machine that vanished after ten seconds. A statement
// that waits for the transactions that use the table gives up after a second, because all
// later users of the table wait behind it.
func alone(ctx context.Context, on sqlstore.Conn, table string) error {
	if _, err := on.Exec(ctx, "SET SESSION wait_timeout = 10, SESSION lock_wait_timeout = 1"); err != nil {
		return err
	}
	var locked *int64
	err := on.Query(ctx, fmt.Sprintf("SELECT GET_LOCK(CONCAT('reprise_', SHA1(LOWER(CONCAT(DATABASE(), '.%s')))), 1)", table),
		func(r sqlstore.Row) error { return r.Scan(&locked) })
	if err == nil && (locked == nil || *locked != 1) {
		err = fmt.Errorf("%w: mysql: another process migrates the table", store.ErrBusy)
	}
	return err
}
