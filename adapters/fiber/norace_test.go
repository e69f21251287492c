//go:build !race

package reprisefiber_test

const raceEnabled = false
