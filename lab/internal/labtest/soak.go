package labtest

import (
	"os"
	"testing"
	"time"
)

// Soak is the length of a soak test, and 0 where none was requested.
func Soak(tb testing.TB) time.Duration {
	tb.Helper()
	text := os.Getenv("REPRISE_SOAK")
	if text == "" {
		return 0
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		tb.Fatalf("REPRISE_SOAK: %v", err)
	}
	return d
}
