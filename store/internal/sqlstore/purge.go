package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"time"
)

// maxPurge is the largest number of records that one call deletes or empties.
const maxPurge = 100_000

// Purge deletes records that are not seen any more, and empties those whose payload is
// not replayed any more.
func (t *Table) Purge(ctx context.Context, limit int) (int, error) {
	if limit < 1 || limit > maxPurge {
		return 0, t.Dialect.Invalid("purge of %d records: want 1 to %d", limit, maxPurge)
	}
	purged := 0
	err := t.write(ctx, "purge", func(ctx context.Context, on Conn) error {
		now, err := t.now(ctx, on)
		if err != nil {
			return err
		}
		if purged, err = changed(on.ExecContext(ctx, t.statements.purge, now, now, now, limit)); err != nil || purged == limit {
			return err
		}
		emptied, err := changed(on.ExecContext(ctx, t.statements.empty, now, now, limit-purged))
		purged += emptied
		return err
	})
	if err != nil {
		return 0, err
	}
	return purged, nil
}

// now reads the clock of the store.
func (t *Table) now(ctx context.Context, on Conn) (now int64, err error) {
	if t.Dialect.Clock == "" {
		return time.Now().UnixMicro(), nil
	}
	rows, err := on.QueryContext(ctx, t.statements.now)
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	if rows.Next() {
		err = rows.Scan(&now)
	}
	return now, errors.Join(err, rows.Err())
}

// changed returns how many rows a statement changed.
func changed(result sql.Result, err error) (int, error) {
	if err != nil {
		return 0, err
	}
	n, err := result.RowsAffected()
	return int(n), err
}

// Maintain purges until ctx ends.
func (t *Table) Maintain(ctx context.Context) {
	pace := t.Options.Purge
	pace.Purge(ctx, func(ctx context.Context) (int, error) {
		bounded, cancel := context.WithTimeout(ctx, pace.Timeout)
		defer cancel()
		return t.Purge(bounded, pace.Batch)
	}, func(err error) {
		if failures, due := t.purgeFailed.Count(); due {
			t.Options.Logger.LogAttrs(ctx, slog.LevelError, "reprise: purge failed",
				slog.String("store", t.Dialect.Name), slog.Int("failures", failures), slog.Any("error", err))
		}
	})
}
