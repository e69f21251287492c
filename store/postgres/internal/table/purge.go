package table

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
	"github.com/reprise-go/reprise/store/postgres/internal/wire"
)

// MaxPurge is the largest number of records that one statement deletes or empties.
const MaxPurge = 100_000

// purgeBound is the place in the index where the next purge begins. Entries before it
// are gone, and while an old snapshot keeps them every statement that starts at the
// front reads them all again.
type purgeBound struct {
	mu sync.Mutex
	at *time.Time // nil: the front
}

// Purge deletes records that are not seen any more, and empties those whose payload is
// not replayed any more. Any number of processes may purge at once: each skips records
// that another is about to purge, or to claim.
//
// It goes on where the last call of this store ended, until a call finds fewer than
// limit; the next one begins at the front again.
func (t *Table) Purge(ctx context.Context, limit int) (purged int, err error) {
	if limit < 1 || limit > MaxPurge {
		return 0, Invalid("purge of %d records: want 1 to %d", limit, MaxPurge)
	}
	b := &t.purging
	b.mu.Lock()
	from := b.at
	b.mu.Unlock()
	var last *time.Time
	err = t.Run(ctx, "purge", t.Statements.purge, func(rows pgx.Rows) error {
		rows.Next()
		return rows.Scan(&purged, &last)
	}, limit, from)
	if err != nil {
		return 0, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.at = nil
	if purged == limit {
		b.at = last
	}
	return purged, nil
}

// Purgeable counts the records that Purge would change now, up to limit (1 or more), for
// a program that shows how much there is to do. It reads each of them.
func (t *Table) Purgeable(ctx context.Context, limit int) (count int, err error) {
	if limit < 1 {
		return 0, Invalid("counting up to %d records: want 1 or more", limit)
	}
	err = t.Run(ctx, "count", t.Statements.purgeable, func(rows pgx.Rows) error {
		rows.Next()
		return rows.Scan(&count)
	}, limit)
	return count, err
}

// PurgePace is how runPurger goes about it.
type PurgePace struct {
	Every   time.Duration // between two rounds
	Batch   int           // records that one statement deletes or empties
	Pause   time.Duration // between two statements of one round
	Timeout time.Duration // the longest that one statement may take
}

// RunPurger purges at once and then about every c.Every, until ctx ends.
func (t *Table) RunPurger(ctx context.Context, c PurgePace) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		if err := t.purgeAll(ctx, c); err != nil && ctx.Err() == nil {
			t.Options.Logger.LogAttrs(ctx, slog.LevelError, "reprisepg: purge failed", slog.Any("error", err))
		}
		timer.Reset(c.Every - c.Every/10 + rand.N(c.Every/5)) //nolint:gosec // keeps processes apart, no secret
	}
}

// purgeAll purges until no record is left to delete or to empty.
func (t *Table) purgeAll(ctx context.Context, c PurgePace) error {
	for {
		purged, err := t.purgeOnce(ctx, c)
		if err != nil || purged < c.Batch {
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

func (t *Table) purgeOnce(ctx context.Context, c PurgePace) (int, error) {
	bounded, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	purged, err := t.Purge(bounded, c.Batch)
	if err != nil && ctx.Err() == nil && bounded.Err() != nil && !errors.Is(err, wire.ErrNoConnection) {
		return 0, fmt.Errorf("%w: postgres: purge: %d records took longer than %v; use a smaller PurgerConfig.Batch",
			store.ErrUnavailable, c.Batch, c.Timeout)
	}
	return purged, err
}
