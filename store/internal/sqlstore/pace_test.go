package sqlstore

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

var errFailed = errors.New("failed")

// TestPurgeKeepsItsPace: it purges within Every and then about every Every, goes on after
// failures, of which it reports each, and ends with its context.
func TestPurgeKeepsItsPace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const rounds = 100
		var starts []time.Time
		failures := 0
		ctx, stop := context.WithTimeout(t.Context(), rounds*time.Hour)
		defer stop()
		start := time.Now()
		atPace(ctx, time.Hour, func(context.Context, int) (int, error) {
			starts = append(starts, time.Now())
			return 0, errFailed
		}, func(err error) {
			if failures++; !errors.Is(err, errFailed) {
				t.Error(err)
			}
		})
		if time.Since(start) != rounds*time.Hour {
			t.Errorf("it ended after %v", time.Since(start))
		}
		if len(starts) < rounds*9/10 || len(starts) > rounds*11/10+1 || starts[0].Sub(start) >= time.Hour || failures != len(starts) {
			t.Fatalf("%d rounds in %d times its pace, the first after %v, and %d failures", len(starts), rounds, starts[0].Sub(start), failures)
		}
		shortest, longest := rounds*time.Hour, time.Duration(0)
		for i := 1; i < len(starts); i++ {
			gap := starts[i].Sub(starts[i-1])
			shortest, longest = min(shortest, gap), max(longest, gap)
		}
		if shortest < 54*time.Minute || longest > 66*time.Minute || longest-shortest < time.Minute {
			t.Errorf("rounds are %v to %v apart, want a tenth of an hour to either side", shortest, longest)
		}
	})
}

// TestPurgeKeepsProcessesApart: a hundred processes that start together purge for the
// first time all over their pace.
func TestPurgeKeepsProcessesApart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithTimeout(t.Context(), time.Minute-time.Second)
		defer stop()
		start := time.Now()
		var (
			mu        sync.Mutex
			thirds    [3]int
			processes sync.WaitGroup
		)
		for range 100 {
			processes.Go(func() {
				atPace(ctx, time.Minute, func(context.Context, int) (int, error) {
					mu.Lock()
					defer mu.Unlock()
					thirds[time.Since(start)/(20*time.Second)]++
					return 0, nil
				}, func(err error) { t.Error(err) })
			})
		}
		processes.Wait()
		if slices.Min(thirds[:]) < 10 {
			t.Errorf("%v purges in the thirds of the first minute, want about 33 in each", thirds)
		}
	})
}

// TestRoundPurgesAllThereIs: batch after batch, with a pause between them that is as long
// as a batch took. The end of the context ends the pause, and is no failure.
func TestRoundPurgesAllThereIs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		batches, start := 0, time.Now()
		err := round(t.Context(), func(_ context.Context, limit int) (int, error) {
			time.Sleep(time.Second)
			batches++
			return min(limit, 3*limit-1-limit*(batches-1)), nil
		})
		if err != nil || batches != 3 || time.Since(start) != 5*time.Second {
			t.Errorf("%d batches in %v, %v; want 3 in 5s", batches, time.Since(start), err)
		}
		ctx, stop := context.WithTimeout(t.Context(), 3*time.Second)
		defer stop()
		start = time.Now()
		atPace(ctx, time.Second, func(_ context.Context, limit int) (int, error) {
			time.Sleep(2 * time.Second)
			return limit, nil
		}, func(err error) { t.Error(err) })
		if time.Since(start) != 3*time.Second {
			t.Errorf("it ended after %v", time.Since(start))
		}
	})
}

// TestPurgeIsTurnedOff: by a negative pace.
func TestPurgeIsTurnedOff(t *testing.T) {
	t.Parallel()
	atPace(t.Context(), -1, func(context.Context, int) (int, error) { // returns
		t.Error("it purges")
		return 0, nil
	}, func(err error) { t.Error(err) })
}
