package conformance

import (
	"testing"
	"time"
)

// Sleep is the Advance of a fixture whose clock cannot be moved.
func Sleep(_ testing.TB, d time.Duration) {
	time.Sleep(d) //nolint:forbidigo // time has to pass; there is no condition to poll
}
