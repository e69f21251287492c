package sqlstore

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-go/reprise/core/store"
)

// TestFailedPurgeIsLogged: with the error.
func TestFailedPurgeIsLogged(t *testing.T) {
	t.Parallel()
	table := tableOn(t, func() error { return nil })
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		table.Writer, table.Options = &failing{errs: []error{store.ErrFull}}, Options{PurgeEvery: time.Second, Logger: slog.New(slog.NewTextHandler(&log, nil))}
		ctx, stop := context.WithTimeout(t.Context(), 5*time.Second)
		defer stop()
		table.Maintain(ctx)
		if n := strings.Count(log.String(), "purge failed"); n < 4 || n != strings.Count(log.String(), store.ErrFull.Error()) {
			t.Errorf("five rounds log %s", log.String())
		}
	})
}

// TestPurgeLeavesNoIsolation to the next transaction of the application: its connection
// is closed if its context ends before its statement.
func TestPurgeLeavesNoIsolation(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	table := tableOn(t, func() error { cancel(); return nil })
	table.Dialect.Isolate = "SET TRANSACTION"
	_, err := table.Purge(ctx, 1)
	if n := table.db.Stats().OpenConnections; err == nil || n != 0 {
		t.Errorf("%v, and %d connections are open", err, n)
	}
}

// TestPurgeHasHalfAMinute: one that the end of the context interrupts is no failure.
func TestPurgeHasHalfAMinute(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for limit, want := range map[time.Duration]int{29 * time.Second: 0, 32 * time.Second: 1} {
			ctx, stop := context.WithTimeout(t.Context(), limit)
			failures := 0
			atPace(ctx, time.Second, func(ctx context.Context, _ int) (int, error) {
				<-ctx.Done()
				return 0, ctx.Err()
			}, func(error) { failures++ })
			stop()
			if failures != want {
				t.Errorf("%d failures in %v, want %d", failures, limit, want)
			}
		}
	})
}
