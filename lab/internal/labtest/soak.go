package labtest

import (
	"os"
	"testing"
	"time"
)

// Soak is for how long a soak tests, and 0 where nobody asked for one.
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
