//go:build race

package reprisefiber_test

// raceEnabled tells a test whose handler is late on purpose that it cannot run: fasthttp
// lets such a handler race with its server.
const raceEnabled = true
