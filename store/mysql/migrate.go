package reprisemysql

import (
	"context"
	"database/sql"
)

// Migrate creates the table where it does not exist. Any number of processes may do so at
// once. It needs the right CREATE on the table.
func Migrate(ctx context.Context, db *sql.DB, c Config) error {
	t, err := newTable(db, c)
	if err != nil {
		return err
	}
	return t.Migrate(ctx)
}

// Schema returns the statements of [Migrate], for another migration tool.
func Schema(c Config) ([]string, error) {
	o, err := c.options()
	if err != nil {
		return nil, err
	}
	return dialect.Statements(o.Table), nil
}
