package reprisepg

import (
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
)

// TestPreparingIsGivenUpOnce: the log says so the first time, and no more.
func TestPreparingIsGivenUpOnce(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	r := records{config: Config{Logger: slog.New(slog.NewTextHandler(&log, nil))}, unprepared: new(atomic.Bool)}
	for range 3 {
		r.giveUpPreparing(t.Context(), errors.New("no such statement"))
	}
	if text := log.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "without keeping prepared statements") || !strings.Contains(text, "no such statement") {
		t.Errorf("the log says %q", text)
	}
	if !r.unprepared.Load() {
		t.Error("statements are still prepared")
	}
}
