package reprisepg

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/reprise-go/reprise/core/store"
)

// The values that a zero [PurgerConfig] stands for.
const (
	DefaultPurgeEvery   = time.Minute
	DefaultPurgeBatch   = 1000
	DefaultPurgeTimeout = 30 * time.Second
)

// PurgerConfig sets the pace of RunPurger. The zero value is the default of every
// field.
type PurgerConfig struct {
	Every   time.Duration // between two rounds, 1 s or more; zero means a minute
	Batch   int           // records that one statement deletes, 1 to 100,000; zero means 1,000
	Pause   time.Duration // between two statements of one round; zero means none
	Timeout time.Duration // the longest that one statement may take; zero means 30 s
}

func (c PurgerConfig) withDefaults() (PurgerConfig, error) {
	if c.Every == 0 {
		c.Every = DefaultPurgeEvery
	}
	if c.Batch == 0 {
		c.Batch = DefaultPurgeBatch
	}
	if c.Timeout == 0 {
		c.Timeout = DefaultPurgeTimeout
	}
	switch {
	case c.Every < time.Second:
		return c, invalid("PurgerConfig.Every %v: want 1s or more", c.Every)
	case c.Batch < 1 || c.Batch > maxPurge:
		return c, invalid("PurgerConfig.Batch %d: want 1 to %d", c.Batch, maxPurge)
	case c.Pause < 0:
		return c, invalid("PurgerConfig.Pause %v: want 0 or more", c.Pause)
	case c.Timeout < 0:
		return c, invalid("PurgerConfig.Timeout %v: want 0 or more", c.Timeout)
	}
	return c, nil
}

// maxPurge is the most that one statement deletes.
const maxPurge = 100_000

// purgeBound is the place in the index where the next purge begins. Entries before it
// are deleted, and while an old snapshot keeps them every statement that starts at the
// front reads them all again.
type purgeBound struct {
	mu sync.Mutex
	at *time.Time // nil: the front
}

// Purge implements [store.Purger]. Any number of processes may purge at once: each
// skips what another is about to delete, or to claim.
//
// It goes on where the last call of this store ended, until a call deletes fewer than
// limit; the next one begins at the front again.
func (t *records) Purge(ctx context.Context, limit int) (deleted int, err error) {
	if limit < 1 || limit > maxPurge {
		return 0, invalid("purge of %d records: want 1 to %d", limit, maxPurge)
	}
	b := t.purging
	b.mu.Lock()
	from := b.at
	b.mu.Unlock()
	var last *time.Time
	err = t.run(ctx, "purge", t.sql.purge, func(rows pgx.Rows) error {
		rows.Next()
		return rows.Scan(&deleted, &last)
	}, limit, from)
	if err != nil {
		return 0, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.at = nil
	if deleted == limit {
		b.at = last
	}
	return deleted, nil
}

// RunPurger deletes the records that nobody sees any more, at once and then about every
// [PurgerConfig.Every], until ctx ends; then it returns nil. One process needs to do
// it, and every process may. A purge that fails is logged and tried again in the next
// round. It returns an error, ErrInvalid, only for c.
func (t *records) RunPurger(ctx context.Context, c PurgerConfig) error {
	c, err := c.withDefaults()
	if err != nil {
		return err
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		}
		if err := t.purgeAll(ctx, c); err != nil && ctx.Err() == nil {
			t.config.Logger.LogAttrs(ctx, slog.LevelError, "reprisepg: purge failed", slog.Any("error", err))
		}
		timer.Reset(c.Every - c.Every/10 + rand.N(c.Every/5)) //nolint:gosec // keeps processes apart, no secret
	}
}

// purgeAll purges until nothing is left to delete.
func (t *records) purgeAll(ctx context.Context, c PurgerConfig) error {
	for {
		deleted, err := t.purgeOnce(ctx, c)
		if err != nil || deleted < c.Batch {
			return err
		}
		if c.Pause > 0 {
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(c.Pause):
			}
		}
	}
}

func (t *records) purgeOnce(ctx context.Context, c PurgerConfig) (int, error) {
	bounded, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	deleted, err := t.Purge(bounded, c.Batch)
	if err != nil && ctx.Err() == nil && bounded.Err() != nil && !errors.Is(err, errNoConnection) {
		return 0, fmt.Errorf("%w: postgres: purge: %d records took longer than %v; use a smaller PurgerConfig.Batch",
			store.ErrUnavailable, c.Batch, c.Timeout)
	}
	return deleted, err
}
