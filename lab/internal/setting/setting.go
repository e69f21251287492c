// Package setting has what the environment, and the way in which they were compiled, say
// to the tests of the lab. It imports no store and no framework.
package setting

import (
	"os"
	"strconv"
	"testing"
	"time"
)

// Number returns the number in an environment variable, or another.
func Number(tb testing.TB, name string, otherwise uint64) uint64 {
	tb.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		tb.Fatalf("%s: %v", name, err)
	}
	return n
}

// Soak returns the length of a soak test, and 0 where none was requested.
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
