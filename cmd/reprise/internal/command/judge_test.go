package command

import (
	"context"
	"strings"
	"testing"
	"time"
)

// A service that the command leaves running has its output open.
func TestRunCommandWaitsForTheCommandOnly(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	began := time.Now()
	if err := runCommand(ctx, "sleep 30 &"); err != nil || time.Since(began) > 20*time.Second {
		t.Errorf("after %v: %v", time.Since(began), err)
	}
	if err := runCommand(ctx, "echo no such service; exit 3"); err == nil || !strings.Contains(err.Error(), "no such service") {
		t.Errorf("%v", err)
	}
}
