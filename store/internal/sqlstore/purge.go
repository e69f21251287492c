package sqlstore

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"slices"
	"time"
)

// maxPurge is the largest number of records that one call deletes or empties.
const maxPurge = 100_000

// Purge implements [store.Purger].
func (t *Table) Purge(ctx context.Context, limit int) (int, error) {
	switch {
	case limit < 1 || limit > maxPurge:
		return 0, Invalid(t.Dialect.Name, "purge of %d records: want 1 to %d", limit, maxPurge)
	case t.Own != nil:
		return t.Own.Purge(ctx, limit)
	}
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
		if t.Dialect.Isolate != "" { // the statement itself searches for the rows
			if _, err := on.Exec(ctx, t.Dialect.Isolate); err != nil {
				return 0, err
			}
		}
		return on.Exec(ctx, statement, slices.Concat([]any{due}, others, []any{limit})...)
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

// Maintain implements [store.Maintainer]: it purges at the pace of the configuration
// until ctx ends. An engine calls it.
func (t *Table) Maintain(ctx context.Context) {
	atPace(ctx, t.Options.PurgeEvery, t.Purge, func(err error) {
		t.Options.Logger.LogAttrs(ctx, slog.LevelError, "reprise: purge failed", slog.String("store", t.Dialect.Name), slog.Any("error", err))
	})
}

const (
	// batch is how many records one call deletes or empties, which others wait for.
	batch = 500

	// longest bounds one call.
	longest = 30 * time.Second
)

// atPace starts a round about every so often until ctx ends, or none if every is
// negative. The first round starts at a random time within that, so that processes that
// start together do not purge together. A round calls purge until it changes fewer
// records than its limit; it pauses between two calls for as long as the first of them
// took. failed gets the errors of rounds.
func atPace(ctx context.Context, every time.Duration, purge func(ctx context.Context, limit int) (int, error), failed func(error)) {
	if every < 0 {
		return
	}
	timer := time.NewTimer(rand.N(every)) //nolint:gosec // jitter needs no secrecy
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		if err := round(ctx, purge); err != nil && ctx.Err() == nil {
			failed(err)
		}
		timer.Reset(every - every/10 + rand.N(every/5)) //nolint:gosec // as above
	}
}

func round(ctx context.Context, purge func(context.Context, int) (int, error)) error {
	for {
		start := time.Now()
		bounded, cancel := context.WithTimeout(ctx, longest)
		purged, err := purge(bounded, batch)
		cancel()
		if err != nil || purged < batch {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(time.Since(start)):
		}
	}
}
