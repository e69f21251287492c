//go:build race

package reprisefiber3_test

func init() { raceEnabled = true }
