package table

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-go/reprise/store/postgres/internal/pgtest"
	"github.com/reprise-go/reprise/store/postgres/internal/wire"
)

// TestPausesGrow: the first repetition is at once, later ones wait, and none outlasts its
// caller.
func TestPausesGrow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		for try := 1; try <= maxTries; try++ {
			longest := time.Duration(0)
			for range 50 {
				start := time.Now()
				if !pause(t.Context(), try) {
					t.Errorf("pause %d ends the call", try)
				}
				longest = max(longest, time.Since(start))
			}
			low, high := time.Duration(try)*time.Millisecond/2, time.Duration(try)*time.Millisecond
			if try == 1 {
				low, high = 0, 0
			}
			if longest < low || longest > high {
				t.Errorf("pause %d takes up to %v, want %v", try, longest, high)
			}
			if try == 1 && pause(ended, try) {
				t.Error("a caller that left is repeated")
			}
		}
		start := time.Now()
		short, cancelShort := context.WithTimeout(t.Context(), time.Nanosecond)
		defer cancelShort()
		if pause(short, 1000) || time.Since(start) != time.Nanosecond {
			t.Error("a pause outlasts its caller")
		}
	})
}

// TestMissingSchemaIsLoggedOnceAMinute: and other errors are not.
func TestMissingSchemaIsLoggedOnceAMinute(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var (
			log strings.Builder
			m   missingSchema
		)
		logger := slog.New(slog.NewTextHandler(&log, nil))
		lines := func() int { return strings.Count(log.String(), "\n") }
		m.report(t.Context(), logger, "keys", pgtest.ServerError("ERROR", wire.CodeDiskFull))
		m.report(t.Context(), logger, "keys", nil)
		if n := lines(); n != 0 {
			t.Errorf("%d lines about something else", n)
		}
		missing := pgtest.ServerError("ERROR", wire.CodeNoTable)
		for i, after := range []time.Duration{0, time.Minute - 1, 1} {
			time.Sleep(after) //nolint:forbidigo // in a bubble
			m.report(t.Context(), logger, "keys", missing)
			if n, want := lines(), []int{1, 1, 2}[i]; n != want {
				t.Errorf("%v later: %d lines, want %d", after, n, want)
			}
		}
		if !strings.Contains(log.String(), "run Migrate") || !strings.Contains(log.String(), "table=keys") {
			t.Error(log.String())
		}
	})
}
