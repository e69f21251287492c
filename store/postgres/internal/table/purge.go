package table

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/postgres/internal/wire"
)

// MaxPurge is the largest number of records that one statement deletes or empties.
const MaxPurge = 100_000

// purgeBound is the place in the index where the next purge begins. The records before it
// are deleted, but as long as an old snapshot keeps their entries, a statement that
// starts at the front reads all of them again.
type purgeBound struct {
	mu sync.Mutex
	at *time.Time // nil: the front
}

// Purge deletes records that have expired, and empties those whose payload is no longer
// replayed. Any number of processes may purge at once: each skips records that another is
// about to purge or to claim.
//
// It continues where the last call of this store ended. After a call that found fewer
// than limit, the next one starts at the front again.
func (t *Table) Purge(ctx context.Context, limit int) (purged int, err error) {
	if limit < 1 || limit > MaxPurge {
		return 0, Invalid("purge of %d records: want 1 to %d", limit, MaxPurge)
	}
	return t.purge(ctx, limit, nil)
}

// purge is Purge. If lock is not nil, it does nothing while another statement holds that
// advisory lock. The lock lasts as long as the statement, so it needs no session and does
// not survive a crash.
func (t *Table) purge(ctx context.Context, limit int, lock *int64) (purged int, err error) {
	b := &t.purging
	b.mu.Lock()
	from := b.at
	b.mu.Unlock()
	var last *time.Time
	err = t.Run(ctx, "purge", t.Statements.purge, func(rows pgx.Rows) error {
		rows.Next()
		return rows.Scan(&purged, &last)
	}, limit, from, lock)
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

// Maintain purges about every Purge.Every until ctx ends. The first round starts at a
// random time within that, so that processes that start together do not purge together.
func (t *Table) Maintain(ctx context.Context) {
	t.Options.Purge.Purge(ctx, t.purgeOnce, func(err error) { t.reportPurge(ctx, err) })
}

func (t *Table) reportPurge(ctx context.Context, err error) {
	if failures, due := t.purgeFailed.Count(); due {
		t.Options.Logger.LogAttrs(ctx, slog.LevelError, "reprisepg: purge failed", slog.Int("failures", failures), slog.Any("error", err))
	}
}

// purgeOnce purges a batch, unless another process purges.
func (t *Table) purgeOnce(ctx context.Context) (int, error) {
	pace := t.Options.Purge
	bounded, cancel := context.WithTimeout(ctx, pace.Timeout)
	defer cancel()
	lock := t.Names.lock("purge")
	purged, err := t.purge(bounded, pace.Batch, &lock)
	if err != nil && ctx.Err() == nil && bounded.Err() != nil && !errors.Is(err, wire.ErrNoConnection) {
		return 0, fmt.Errorf("%w: postgres: purge: %d records took longer than %v; use a smaller Config.Purge.Batch",
			store.ErrUnavailable, pace.Batch, pace.Timeout)
	}
	return purged, err
}
