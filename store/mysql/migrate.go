package reprisemysql

import (
	"context"
	"database/sql"
)

// Migrate creates the table if it does not exist. Any number of processes may call it at
// once. It needs the privilege CREATE on the table.
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
