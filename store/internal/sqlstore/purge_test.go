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

// TestMaintainLogsOnceAMinute: why a purge failed, and how many did. Each has half a
// minute, and one that the end of the context interrupts is no failure.
func TestMaintainLogsOnceAMinute(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		table := &Table{Dialect: &Dialect{Name: "db"}, Options: Options{
			PurgeEvery: time.Second, Logger: slog.New(slog.NewTextHandler(&log, nil)),
		}}
		maintain := func(d time.Duration, purge func(context.Context) error) (lines int) {
			log.Reset()
			ctx, stop := context.WithTimeout(t.Context(), d)
			defer stop()
			table.maintain(ctx, func(ctx context.Context, _ int) (int, error) {
				return 0, purge(ctx)
			})
			return strings.Count(log.String(), "\n")
		}
		hangs := func(ctx context.Context) error { <-ctx.Done(); return store.ErrBusy }
		if n := maintain(29*time.Second, hangs); n != 0 {
			t.Errorf("interrupted: %s", log.String())
		}
		if n := maintain(32*time.Second, hangs); n != 1 || !strings.Contains(log.String(), "purge failed") || !strings.Contains(log.String(), store.ErrBusy.Error()) {
			t.Errorf("its time ended: %s", log.String())
		}
		time.Sleep(time.Minute)
		n := maintain(10*time.Minute-time.Second, func(context.Context) error { return store.ErrFull })
		if n < 9 || n > 10 || strings.Count(log.String(), "failures=1 ") != 1 {
			t.Errorf("%d lines in ten minutes:\n%s", n, log.String())
		}
	})
}
