// Package labfiber_test has the layers of Fiber around the adapter for Fiber. It does not
// look for leaked goroutines, as its siblings do: limiter, compress and SendFile start
// some that cannot be stopped.
package labfiber_test

import (
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"

	appfiber "github.com/reprise-go/reprise/adapters/fiber/nativeapp"
	"github.com/reprise-go/reprise/lab/draws"
	"github.com/reprise-go/reprise/lab/wire"
)

func TestWire(t *testing.T) { wire.Run(t, "fiber", appfiber.New) } //nolint:paralleltest // it measures memory

// serve serves an app on a free port of the loopback interface until the test ends.
func serve(t *testing.T, app *fiber.App) (addr string) {
	t.Helper()
	return draws.Listen(t, app.Listener, func() error { return app.ShutdownWithTimeout(time.Minute) })
}
