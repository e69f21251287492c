package serve

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"

	_ "modernc.org/sqlite" // the driver

	reprisesqlite "github.com/reprise-go/reprise/store/sqlite"
)

// OpenFile opens a file of SQLite as docs/operate/sqlite.md says to, with up to conns
// connections, or eight for 0.
func OpenFile(file string, conns int) (*sql.DB, error) {
	const settings = "?_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)"
	db, err := sql.Open("sqlite", "file:"+filepath.ToSlash(file)+settings)
	if err == nil {
		conns = cmp.Or(conns, filePool)
		db.SetMaxOpenConns(conns)
		db.SetMaxIdleConns(conns) // else database/sql keeps two, and opens and closes the others all the time
	}
	return db, err
}

const filePool = 8

// openSQLite opens the store in a file of SQLite. Effects are in the same file.
func openSQLite(ctx context.Context, b *Backend, o StoreOptions) error {
	c := reprisesqlite.Config{TxTimeout: o.TxTimeout, PurgeEvery: -1} // Options.Purge says when to purge, for every store
	if o.SQLiteFile == "" {
		return errors.New("needs -sqlite-file")
	}
	db, err := OpenFile(o.SQLiteFile, o.Pool)
	if err != nil {
		return err
	}
	b.closers = append(b.closers, func() { _ = db.Close() })
	if err := reprisesqlite.Migrate(ctx, db, c); err != nil {
		return err
	}
	const table = "CREATE TABLE IF NOT EXISTS reprise_effects (op TEXT NOT NULL, attempt INTEGER NOT NULL, owner BLOB, at INTEGER NOT NULL)"
	if _, err := db.ExecContext(ctx, table); err != nil {
		return fmt.Errorf("create the table of effects: %w", err)
	}
	b.Effect = sqlEffect(db, reprisesqlite.Tx, "CAST(unixepoch('subsec') * 1000000 AS INTEGER)")
	b.Store, err = reprisesqlite.Open(ctx, db, c)
	return err
}
