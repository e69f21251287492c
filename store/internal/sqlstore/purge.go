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

// Purge deletes records that have expired, and empties those whose payload is no longer
// replayed.
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
		if purged, err = t.isolated(ctx, on, t.statements.purge, now, now, now, limit); err != nil || purged == limit {
			return err
		}
		emptied, err := t.isolated(ctx, on, t.statements.trim, now, now, limit-purged)
		purged += emptied
		return err
	})
	if err != nil {
		return 0, err
	}
	return purged, nil
}

// isolated executes a statement that itself searches for the rows to change. It returns
// how many it changed.
func (t *Table) isolated(ctx context.Context, on Conn, statement string, args ...any) (int, error) {
	if t.Dialect.Isolate != "" {
		if _, err := on.ExecContext(ctx, t.Dialect.Isolate); err != nil {
			return 0, err
		}
	}
	return changed(on.ExecContext(ctx, statement, args...))
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
	var clock sql.NullInt64
	if rows.Next() {
		if err = rows.Scan(&clock); err == nil && !clock.Valid {
			err = errSession
		}
	}
	return clock.Int64, errors.Join(err, rows.Err())
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
