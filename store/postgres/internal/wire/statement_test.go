package wire

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
)

// TestSenderLogsOnceThatItStopsPreparing: the log says so the first time, and no more.
func TestSenderLogsOnceThatItStopsPreparing(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	s := Sender{Logger: slog.New(slog.NewTextHandler(&log, nil))}
	for range 3 {
		s.GiveUp(t.Context(), errors.New("no such statement"))
	}
	if text := log.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "without keeping prepared statements") || !strings.Contains(text, "no such statement") {
		t.Errorf("the log says %q", text)
	}
	if !s.Unprepared.Load() {
		t.Error("statements are still prepared")
	}
}
