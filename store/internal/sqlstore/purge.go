package sqlstore

import (
	"context"
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
	err := t.Write(ctx, "purge", func(ctx context.Context, on Conn) error {
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
		if _, err := on.Exec(ctx, t.Dialect.Isolate); err != nil {
			return 0, err
		}
	}
	return on.Exec(ctx, statement, args...)
}

// now reads the clock of the store.
func (t *Table) now(ctx context.Context, on Conn) (now int64, err error) {
	if t.Dialect.Clock == "" {
		return time.Now().UnixMicro(), nil
	}
	err = on.Query(ctx, t.statements.now, func(r Row) error {
		var clock *int64
		if err := r.Scan(&clock); err != nil {
			return err
		}
		if clock == nil {
			return errSession
		}
		now = *clock
		return nil
	})
	return now, err
}

// Maintain calls purge at the pace of the store until ctx ends.
func (t *Table) Maintain(ctx context.Context, purge func(ctx context.Context, limit int) (int, error)) {
	pace := t.Options.Purge
	pace.Purge(ctx, func(ctx context.Context) (int, error) {
		bounded, cancel := context.WithTimeout(ctx, pace.Timeout)
		defer cancel()
		return purge(bounded, pace.Batch)
	}, func(err error) {
		if failures, due := t.purgeFailed.Count(); due {
			t.Options.Logger.LogAttrs(ctx, slog.LevelError, "reprise: purge failed",
				slog.String("store", t.Dialect.Name), slog.Int("failures", failures), slog.Any("error", err))
		}
	})
}
