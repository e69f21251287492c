// Package labfiber_test has the layers of Fiber around the adapter for Fiber. It does not
// look for leaked goroutines, as its siblings do: limiter, compress and SendFile start
// some that cannot be stopped.
package labfiber_test

import (
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/reprise-go/reprise/lab/draws"
)

// serve serves an app on a free port of the loopback interface until the test ends.
func serve(t *testing.T, app *fiber.App) (addr string) {
	t.Helper()
	return draws.Listen(t, app.Listener, func() error { return app.ShutdownWithTimeout(time.Minute) })
}
