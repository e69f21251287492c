package labfiber3_test

import (
	"testing"

	"github.com/gofiber/fiber/v3"

	reprisefiber3 "github.com/reprise-go/reprise/adapters/fiber3"
	"github.com/reprise-go/reprise/conformance/adaptertest"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/lab/frameworks/cost"
)

//nolint:paralleltest // it counts the allocations of the process
func TestCostOfFiber3OverMemory(t *testing.T) {
	body := []byte(adaptertest.DefaultBody)
	cost.Fasthttp(t, func(protected bool) string {
		app := fiber.New()
		if protected {
			app.Use(reprisefiber3.Middleware(cost.Guard(t, memstore.New()), reprisefiber3.Unscoped))
		}
		app.Post("/orders", func(c fiber.Ctx) error {
			c.Set(fiber.HeaderContentType, adaptertest.DefaultContentType)
			return c.Status(adaptertest.DefaultStatus).Send(body)
		})
		return serve(t, app)
	})
}
