// Package labfiber3_test has the layers of Fiber around the adapter for Fiber v3. It does
// not look for leaked goroutines, as its siblings do: limiter, compress and SendFile
// start some that cannot be stopped.
package labfiber3_test

import (
	"net"
	"testing"
	"time"

	"github.com/gofiber/fiber/v3"

	appfiber3 "github.com/reprise-go/reprise/adapters/fiber3/nativeapp"
	"github.com/reprise-go/reprise/lab/draws"
	"github.com/reprise-go/reprise/lab/wire"
)

func TestWire(t *testing.T) { wire.Run(t, "fiber3", appfiber3.New) } //nolint:paralleltest // it measures memory

// serve serves an app on a free port of the loopback interface until the test ends.
func serve(t *testing.T, app *fiber.App) (addr string) {
	t.Helper()
	return draws.Listen(t, func(ln net.Listener) error {
		return app.Listener(ln, fiber.ListenConfig{DisableStartupMessage: true})
	}, func() error { return app.ShutdownWithTimeout(time.Minute) })
}
