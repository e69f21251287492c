package serve

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/lab/serve/sqlitefile"
	reprisesqlite "github.com/reprise-go/reprise/store/sqlite"
)

// openSQLite opens the leased store in a file of SQLite.
func openSQLite(ctx context.Context, b *Backend, o StoreOptions) error {
	db, c, err := b.file(ctx, o)
	if err != nil {
		return err
	}
	store, err := reprisesqlite.Open(ctx, db, c)
	b.Store = store
	return err
}

// openSQLiteTransactional opens the transactional store in a file of SQLite.
func openSQLiteTransactional(ctx context.Context, b *Backend, o StoreOptions) error {
	db, c, err := b.file(ctx, o)
	if err != nil {
		return err
	}
	store, err := reprisesqlite.OpenTransactional(ctx, db, c)
	b.Store = store
	return err
}

// file opens the file and creates its tables. Effects are in the same file.
func (b *Backend) file(ctx context.Context, o StoreOptions) (*sql.DB, reprisesqlite.Config, error) {
	c := reprisesqlite.Config{TxTimeout: o.TxTimeout, PurgeEvery: -1} // Options.Purge says when to purge, for every store
	if o.SQLiteFile == "" {
		return nil, c, errors.New("needs -sqlite-file")
	}
	db, err := sqlitefile.Open(o.SQLiteFile, o.Pool)
	if err != nil {
		return nil, c, err
	}
	b.closers = append(b.closers, func() { _ = db.Close() })
	if err := reprisesqlite.Migrate(ctx, db, c); err != nil {
		return nil, c, err
	}
	const table = "CREATE TABLE IF NOT EXISTS reprise_effects (op TEXT NOT NULL, attempt INTEGER NOT NULL, owner BLOB, at INTEGER NOT NULL)"
	if _, err := db.ExecContext(ctx, table); err != nil {
		return nil, c, fmt.Errorf("create the table of effects: %w", err)
	}
	b.Effect = func(ctx context.Context, op string) error { return insertEffect(ctx, db, op) }
	return db, c, nil
}

// insertEffect inserts the effect of one run, as [effects] does.
func insertEffect(ctx context.Context, db *sql.DB, op string) error {
	exec := db.ExecContext
	if tx, ok := reprisesqlite.Tx(ctx); ok {
		exec = tx.ExecContext
	}
	attempt := 0
	if view, ok := reprise.AttemptFrom(ctx); ok {
		attempt = view.Number()
	}
	const insert = "INSERT INTO reprise_effects (op, attempt, owner, at) VALUES (?, ?, ?, CAST(unixepoch('subsec') * 1000000 AS INTEGER))"
	if _, err := exec(ctx, insert, op, attempt, ownerFrom(ctx)); err != nil {
		return fmt.Errorf("effect: %w", err)
	}
	return nil
}
