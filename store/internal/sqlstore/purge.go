package sqlstore

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/reprise-go/reprise/store/internal/upkeep"
)

// Purge deletes records that have expired, and empties those whose payload is no longer
// replayed.
func (t *Table) Purge(ctx context.Context, limit int) (int, error) {
	purged := 0
	err := t.Write(ctx, "purge", func(ctx context.Context, on Conn) error {
		now, err := t.now(ctx, on)
		if err != nil {
			return err
		}
		if purged, err = t.changeDue(ctx, on, t.statements.purge, t.statements.dueToPurge, limit, now, now, now); err != nil || purged == limit {
			return err
		}
		emptied, err := t.changeDue(ctx, on, t.statements.trim, t.statements.dueToTrim, limit-purged, now, now)
		purged += emptied
		return err
	})
	if err != nil {
		return 0, err
	}
	return purged, nil
}

// changeDue executes a statement of a purge, which changes up to limit rows that are due
// at the first of its parameters. If the dialect bounds their bytes, it does so in steps.
func (t *Table) changeDue(ctx context.Context, on Conn, statement, count string, limit int, due int64, others ...any) (changed int, err error) {
	change := func(limit, due int64) (int, error) {
		return t.isolated(ctx, on, statement, slices.Concat([]any{due}, others, []any{limit})...)
	}
	if t.Dialect.DueBytes == 0 {
		return change(int64(limit), due)
	}
	for changed < limit {
		var found, few, last *int64
		left := int64(limit - changed)
		if err := on.Query(ctx, count, func(r Row) error { return r.Scan(&found, &few, &last) },
			slices.Concat([]any{t.Dialect.DueBytes, due}, others, []any{left})...); err != nil {
			return changed, err
		}
		if few == nil || last == nil { // none is due
			return changed, nil
		}
		n, err := change(*few, *last)
		if changed += n; err != nil || *few == *found || n == 0 { // all, or all are locked
			return changed, err
		}
	}
	return changed, nil
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
	upkeep.Purge(ctx, t.Options.PurgeEvery, purge, func(err error) {
		if failures, due := t.purgeFailed.Count(); due {
			t.Options.Logger.LogAttrs(ctx, slog.LevelError, "reprise: purge failed",
				slog.String("store", t.Dialect.Name), slog.Int("failures", failures), slog.Any("error", err))
		}
	})
}
