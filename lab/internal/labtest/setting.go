package labtest

import (
	"testing"
	"time"

	"github.com/reprise-go/reprise/lab/internal/setting"
)

// RaceEnabled tells the tests that count allocations that they cannot: see
// [setting.Race].
const RaceEnabled = setting.Race

// Soak returns the length of a soak test: see [setting.Soak].
func Soak(tb testing.TB) time.Duration {
	tb.Helper()
	return setting.Soak(tb)
}
