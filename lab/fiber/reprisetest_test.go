//go:build !without_fiber

package fiberstack

import (
	"net/http"
	"testing"

	"github.com/gofiber/fiber/v2"

	reprisefiber "github.com/reprise-go/reprise/adapters/fiber"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/reprisetest"
)

// Users test their handlers in Fiber through the Test method of their app.
func TestReprisetestInFiber(t *testing.T) {
	t.Parallel()
	app := reprisetest.New(t, protocol.Config{Required: true}, func(guard *protocol.Guard) http.Handler {
		app := fiber.New()
		app.Post("/orders", reprisefiber.Middleware(guard, reprisefiber.Unscoped), func(c *fiber.Ctx) error {
			return c.Status(fiber.StatusCreated).JSON(fiber.Map{"id": 7})
		})
		return reprisetest.Func(func(r *http.Request) (*http.Response, error) { return app.Test(r, -1) })
	})
	order := func() *http.Request { return reprisetest.Post("/orders", `{"item":"book"}`) }
	reprisetest.Replay(t, app.Handler(), order())
	reprisetest.Race(t, app.Handler(), 10, order())
	app.StoreDown(order())
	app.StoreFailsAfterRun(order())
	app.StoreLosesReply(order())
	app.Lapse(order())
	app.Crash(order())
}
