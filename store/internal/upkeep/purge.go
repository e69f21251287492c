// Package upkeep has the work that stores do beside their calls: purging at a pace, and
// logging at a bounded rate.
package upkeep

import (
	"context"
	"math/rand/v2"
	"time"
)

const (
	// batch is how many records one call deletes or empties, which others wait for.
	batch = 500

	// longest bounds one call.
	longest = 30 * time.Second
)

// Purge starts a round about every so often until ctx ends, or none if every is negative.
// The first round starts at a random time within that, so that processes that start
// together do not purge together. A round calls purge until it changes fewer records than
// its limit; it pauses between two calls for as long as the first of them took. failed
// gets the errors of rounds.
func Purge(ctx context.Context, every time.Duration, purge func(ctx context.Context, limit int) (int, error), failed func(error)) {
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
