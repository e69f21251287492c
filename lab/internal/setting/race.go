//go:build race

package setting

// Race tells tests that the race detector shuffles goroutines, allocates, and drops
// pooled buffers at random.
const Race = true
