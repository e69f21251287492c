//go:build race

package reprisefiber3_test

// raceEnabled tells the tests of late handlers that they cannot run: Fiber's timeout
// writes the response beside the handler.
const raceEnabled = true
