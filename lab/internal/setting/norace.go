//go:build !race

package setting

// Race tells tests that they run without the race detector.
const Race = false
