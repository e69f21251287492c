//go:build race

package simulator

// raceEnabled tells the tests that the race detector shuffles goroutines.
const raceEnabled = true
