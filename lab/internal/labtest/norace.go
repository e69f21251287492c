//go:build !race

package labtest

// RaceEnabled tells the tests that count allocations that they can.
const RaceEnabled = false
