//go:build !race

package batching

const raceEnabled = false
