//go:build race

package simulation

// raceEnabled tells the tests that the race detector shuffles goroutines.
const raceEnabled = true
