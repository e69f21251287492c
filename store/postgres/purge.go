package reprisepg

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"

	reprise "github.com/reprise-go/reprise/core"
)

// purgeBatch is how many records RunPurger deletes with one statement: few enough that none takes long.
const purgeBatch = 1000

// Purge implements [reprise.Purger]. Any number of processes may purge at once: each skips what another is about to
// delete, or to claim.
func (t *records) Purge(ctx context.Context, limit int) (deleted int, err error) {
	if limit < 1 || limit > 100_000 {
		return 0, fmt.Errorf("%w: purge of %d records, want 1 to 100,000", reprise.ErrInvalid, limit)
	}
	err = t.run(ctx, "purge", t.sql.purge, func(rows pgx.Rows) error {
		rows.Close() // nothing to read; the tag comes last
		deleted = int(rows.CommandTag().RowsAffected())
		return nil
	}, limit)
	if err != nil {
		return 0, err
	}
	return deleted, nil
}

// RunPurger deletes what nobody sees any more, at once and then about every so often (at least a second), until ctx ends; then it
// returns nil. One process needs to do it, and every process may. A purge that fails is logged and tried again at the next
// turn. It returns an error only for what cannot get better: ErrInvalid or ErrMisconfigured at its start.
func (t *records) RunPurger(ctx context.Context, every time.Duration) error {
	if every < time.Second {
		return fmt.Errorf("%w: purge every %v, want at least 1s", reprise.ErrInvalid, every)
	}
	if t.broken != nil {
		return t.broken
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		}
		if err := t.purgeAll(ctx); err != nil && ctx.Err() == nil {
			t.config.Logger.LogAttrs(ctx, slog.LevelError, "reprisepg: purge failed", slog.Any("error", err))
		}
		timer.Reset(every - every/10 + rand.N(every/5)) //nolint:gosec // keeps processes apart, no secret
	}
}

// purgeAll purges until there is no more to do.
func (t *records) purgeAll(ctx context.Context) error {
	for {
		deleted, err := t.Purge(ctx, purgeBatch)
		if err != nil || deleted < purgeBatch {
			return err
		}
	}
}
