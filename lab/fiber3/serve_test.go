// Package labfiber3_test has the layers of Fiber around the adapter for Fiber v3. It does
// not look for leaked goroutines, as its siblings do: limiter, compress and SendFile
// start some that cannot be stopped.
package labfiber3_test

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/gofiber/fiber/v3"
)

// serve serves an app on a free port of the loopback interface until the test ends.
func serve(t *testing.T, app *fiber.App) (addr string) {
	t.Helper()
	ln, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- app.Listener(ln, fiber.ListenConfig{DisableStartupMessage: true}) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 10*time.Second)
		defer cancel()
		if err := app.ShutdownWithContext(ctx); err != nil {
			t.Error(err)
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return ln.Addr().String()
}
