//go:build !race

package reprisefiber3_test

const raceEnabled = false
