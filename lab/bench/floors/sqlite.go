package floors

import (
	"context"
	"database/sql"
	"errors"

	"github.com/reprise-go/reprise/lab/serve"
)

// rows are the floor over SQLite: one connection writes, as is the advice, and others
// read.
type rows struct {
	writer, reader           *sql.DB
	insert, update, selectID *sql.Stmt
}

// newRows creates the table in the file.
func newRows(ctx context.Context, o options) (f *rows, err error) {
	f = new(rows)
	if f.writer, err = serve.OpenFile(o.sqliteFile, 1); err != nil {
		return nil, err
	}
	if f.reader, err = serve.OpenFile(o.sqliteFile, o.pool); err != nil {
		return nil, err
	}
	const create = "CREATE TABLE IF NOT EXISTS bench_floor (id BLOB PRIMARY KEY, state INTEGER, owner BLOB, fingerprint BLOB, payload BLOB)"
	if _, err := f.writer.ExecContext(ctx, create); err != nil {
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

func (f *rows) close() { _ = errors.Join(f.writer.Close(), f.reader.Close()) }

func (f *rows) claim(ctx context.Context, id [32]byte) error {
	_, err := f.insert.ExecContext(ctx, id[:], id[:16], id[:])
	return err
}

func (f *rows) complete(ctx context.Context, id [32]byte, body []byte) error {
	_, err := f.update.ExecContext(ctx, body, id[:])
	return err
}

func (f *rows) replay(ctx context.Context, id [32]byte) (body []byte, err error) {
	err = f.selectID.QueryRowContext(ctx, id[:]).Scan(&body)
	return body, err
}
