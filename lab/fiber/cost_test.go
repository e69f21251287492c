package labfiber_test

import (
	"testing"

	"github.com/gofiber/fiber/v2"

	reprisefiber "github.com/reprise-go/reprise/adapters/fiber"
	"github.com/reprise-go/reprise/conformance/adaptertest"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/lab/frameworks/cost"
)

//nolint:paralleltest // it counts the allocations of the process
func TestCostOfFiberOverMemory(t *testing.T) {
	body := []byte(adaptertest.DefaultBody)
	cost.Fasthttp(t, func(protected bool) string {
		app := fiber.New(fiber.Config{DisableStartupMessage: true})
		if protected {
			app.Use(reprisefiber.Middleware(cost.Guard(t, memstore.New()), reprisefiber.Unscoped))
		}
		app.Post("/orders", func(c *fiber.Ctx) error {
			c.Set(fiber.HeaderContentType, adaptertest.DefaultContentType)
			return c.Status(adaptertest.DefaultStatus).Send(body)
		})
		return serve(t, app)
	})
}
