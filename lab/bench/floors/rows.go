package floors

import (
	"context"
	"database/sql"

	"github.com/reprise-go/reprise/lab/serve"
)

// rows are the floor over a database of database/sql, prepared.
type rows struct {
	writer, reader           *sql.DB
	insert, update, selectID *sql.Stmt
}

// openSQLite opens the floor in a file: one connection writes, as is the advice, and
// others read.
func openSQLite(ctx context.Context, o options) (*rows, error) {
	writer, err := serve.OpenFile(o.sqliteFile, 1)
	if err != nil {
		return nil, err
	}
	reader, err := serve.OpenFile(o.sqliteFile, o.pool)
	if err != nil {
		return nil, err
	}
	return newRows(ctx, writer, reader, "(id BLOB PRIMARY KEY, state INTEGER, owner BLOB, fingerprint BLOB, payload BLOB)")
}

// openMySQL opens the floor in MariaDB or MySQL.
func openMySQL(ctx context.Context, o options) (*rows, error) {
	db, err := serve.OpenMySQL(o.mysqlURL, o.pool)
	if err != nil {
		return nil, err
	}
	return newRows(ctx, db, db, "(id BINARY(32) PRIMARY KEY, state SMALLINT, owner BINARY(16), fingerprint BINARY(32), payload LONGBLOB)")
}

// newRows creates the table, with these columns, and prepares the statements.
func newRows(ctx context.Context, writer, reader *sql.DB, columns string) (f *rows, err error) {
	f = &rows{writer: writer, reader: reader}
	if _, err := f.writer.ExecContext(ctx, "CREATE TABLE IF NOT EXISTS bench_floor "+columns); err != nil {
		return nil, err
	}
	for _, s := range []struct {
		db   *sql.DB
		text string
		to   **sql.Stmt
	}{
		{f.writer, "INSERT INTO bench_floor VALUES (?, 1, ?, ?, '')", &f.insert},
		{f.writer, "UPDATE bench_floor SET state = 2, payload = ? WHERE id = ?", &f.update},
		{f.reader, "SELECT payload FROM bench_floor WHERE id = ?", &f.selectID},
	} {
		if *s.to, err = s.db.PrepareContext(ctx, s.text); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// Claim implements [Round].
func (f *rows) Claim(ctx context.Context, id [32]byte) error {
	_, err := f.insert.ExecContext(ctx, id[:], id[:16], id[:])
	return err
}

// Complete implements [Round].
func (f *rows) Complete(ctx context.Context, id [32]byte, body []byte) error {
	_, err := f.update.ExecContext(ctx, body, id[:])
	return err
}

// Replay implements [Round].
func (f *rows) Replay(ctx context.Context, id [32]byte) (body []byte, err error) {
	err = f.selectID.QueryRowContext(ctx, id[:]).Scan(&body)
	return body, err
}
