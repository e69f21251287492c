package reprisepg

import (
	"database/sql"
	"errors"
	"log/slog"
	"strings"
	"testing"
)

// TestStoreLogsOnceThatItStopsPreparing: the log says so the first time, and no more.
func TestStoreLogsOnceThatItStopsPreparing(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	st := newTestTable(t, new(sql.DB), slog.New(slog.NewTextHandler(&log, nil)))
	for range 3 {
		st.stopPreparing(t.Context(), errors.New("no such statement"))
	}
	if text := log.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "without keeping prepared statements") || !strings.Contains(text, "no such statement") {
		t.Errorf("the log says %q", text)
	}
	if !st.unprepared.Load() {
		t.Error("statements are still prepared")
	}
}
