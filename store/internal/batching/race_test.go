//go:build race

package batching

// raceEnabled tells the tests that count allocations that they cannot: the race detector
// drops pooled buffers at random.
const raceEnabled = true
