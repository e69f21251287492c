package labfiber3_test

import (
	"net/http"
	"testing"

	"github.com/gofiber/fiber/v3"

	reprisefiber3 "github.com/reprise-go/reprise/adapters/fiber3"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/lab/frameworks/cost"
	"github.com/reprise-go/reprise/reprisetest"
)

// Users test their handlers in Fiber through the Test method of their app.
func TestReprisetestInFiber(t *testing.T) {
	t.Parallel()
	cost.Reprisetest(t, func(guard *protocol.Guard) http.Handler {
		app := fiber.New()
		app.Post("/orders", reprisefiber3.Middleware(guard, reprisefiber3.Unscoped), func(c fiber.Ctx) error {
			return c.Status(fiber.StatusCreated).JSON(fiber.Map{"id": 7})
		})
		return reprisetest.Func(func(r *http.Request) (*http.Response, error) { return app.Test(r, fiber.TestConfig{}) })
	})
}
