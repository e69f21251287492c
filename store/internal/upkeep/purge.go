// Package upkeep has the work that stores do beside their calls: purging at a pace, and
// logging at a bounded rate.
package upkeep

import (
	"cmp"
	"context"
	"math/rand/v2"
	"time"
)

// Pace says how [Pace.Purge] purges.
type Pace struct {
	Every   time.Duration // from one round to the next; negative: never
	Batch   int           // how many records one statement deletes or empties
	Pause   time.Duration // between two statements of one round; 0: as long as the first of the two took
	Timeout time.Duration // the longest that one statement may take
}

// Purge starts a round about every p.Every until ctx ends. The first round starts at a
// random time within that, so that processes that start together do not purge together. A
// round calls purge until it changes fewer records than p.Batch. failed gets the errors
// of rounds.
func (p Pace) Purge(ctx context.Context, purge func(context.Context) (int, error), failed func(error)) {
	if p.Every < 0 {
		return
	}
	timer := time.NewTimer(rand.N(p.Every)) //nolint:gosec // jitter needs no secrecy
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		if err := p.round(ctx, purge); err != nil && ctx.Err() == nil {
			failed(err)
		}
		timer.Reset(p.Every - p.Every/10 + rand.N(p.Every/5)) //nolint:gosec // as above
	}
}

func (p Pace) round(ctx context.Context, purge func(context.Context) (int, error)) error {
	for {
		start := time.Now()
		purged, err := purge(ctx)
		if err != nil || purged < p.Batch {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(cmp.Or(p.Pause, time.Since(start))):
		}
	}
}
