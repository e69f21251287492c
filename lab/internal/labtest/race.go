//go:build race

package labtest

// RaceEnabled tells the tests that count allocations that they cannot: the race detector
// drops pooled buffers at random.
const RaceEnabled = true
