package reprisepg

import (
	"database/sql"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-go/reprise/store/postgres/internal/pgtest"
	"github.com/reprise-go/reprise/store/postgres/internal/wire"
)

// TestMissingSchemaIsLoggedOnceAMinute: and other errors are not.
func TestMissingSchemaIsLoggedOnceAMinute(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		r := newTestTable(t, new(sql.DB), slog.New(slog.NewTextHandler(&log, nil)))
		lines := func() int { return strings.Count(log.String(), "\n") }
		r.reportMissing(t.Context(), pgtest.ServerError("ERROR", wire.CodeDiskFull))
		r.reportMissing(t.Context(), nil)
		if n := lines(); n != 0 {
			t.Errorf("%d lines about something else", n)
		}
		missing := pgtest.ServerError("ERROR", wire.CodeNoTable)
		for i, after := range []time.Duration{0, time.Minute - 1, 1} {
			time.Sleep(after) //nolint:forbidigo // in a bubble
			r.reportMissing(t.Context(), missing)
			if n, want := lines(), []int{1, 1, 2}[i]; n != want {
				t.Errorf("%v later: %d lines, want %d", after, n, want)
			}
		}
		if !strings.Contains(log.String(), "run Migrate") || !strings.Contains(log.String(), `reprise_records`) {
			t.Error(log.String())
		}
	})
}
