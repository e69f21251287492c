//go:build race

package reprisefiber_test

func init() { raceEnabled = true }
