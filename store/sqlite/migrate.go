package reprisesqlite

import (
	"context"
	"database/sql"
)

// Migrate creates the table and its index if they do not exist. Any number of processes
// may call it at once. It does not change the journal mode, which applies to the whole
// file: open the database with WAL, as the package comment shows.
//
// Every statement of the store names its columns, so a later release can add one with a
// default while this release runs. This one leaves it as it was when it rewrites a row,
// so the later one must not trust it unless the row still has the revision, which every
// write raises, that the later one wrote.
func Migrate(ctx context.Context, db *sql.DB, c Config) error {
	s, err := New(db, c)
	if err != nil {
		return err
	}
	return s.table.Migrate(ctx)
}

// Schema returns the statements of [Migrate], for another migration tool.
func Schema(c Config) ([]string, error) {
	o, err := c.options()
	if err != nil {
		return nil, err
	}
	return dialect.Statements(o.Table), nil
}
