package labfiber3_test

import (
	"slices"
	"testing"

	"github.com/gofiber/fiber/v3"

	reprisefiber3 "github.com/reprise-go/reprise/adapters/fiber3"
	"github.com/reprise-go/reprise/conformance/adaptertest"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/lab/frameworks/cost"
	"github.com/reprise-go/reprise/lab/internal/labtest"
)

// TestCostOfFiber3OverMemory is the gate of P5: a replay allocates nothing more than
// Fiber, and a new key what the engine keeps of it.
//
//nolint:paralleltest // it counts the allocations of the process
func TestCostOfFiber3OverMemory(t *testing.T) {
	if labtest.RaceEnabled {
		t.Skip("allocations are those of a program without the race detector")
	}
	body := []byte(adaptertest.DefaultBody)
	start := func(layers ...any) (addr string) {
		app := fiber.New()
		chain := append(slices.Clip(layers), func(c fiber.Ctx) error {
			c.Set(fiber.HeaderContentType, adaptertest.DefaultContentType)
			return c.Status(adaptertest.DefaultStatus).Send(body)
		})
		app.Post("/orders", chain[0], chain[1:]...)
		return serve(t, app)
	}
	bare := start()
	protected := start(reprisefiber3.Middleware(cost.Guard(t, memstore.New()), reprisefiber3.Unscoped))
	base := adaptertest.AllocsPerRequest(t, bare, "/orders", adaptertest.Unkeyed, 1)
	for kind, more := range map[adaptertest.Traffic]float64{adaptertest.Unkeyed: 0, adaptertest.NewKeys: 4, adaptertest.Replays: 0} {
		got := adaptertest.AllocsPerRequest(t, protected, "/orders", kind, 1)
		t.Logf("%s: %.2f allocations a request, against %.2f", kind, got, base)
		if got > base+more+0.5 { // maps grow now and then
			t.Errorf("%s: %.2f allocations a request, against %.2f; want at most %v more", kind, got, base, more)
		}
	}
}
