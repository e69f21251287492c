package reprisefiber_test

import (
	"testing"

	"github.com/gofiber/fiber/v2"

	reprisefiber "github.com/reprise-go/reprise/adapters/fiber"
	"github.com/reprise-go/reprise/adapters/internal/fasthttp/harness"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
)

// service is a Fiber app on a real listener, with the middleware over a new store.
type service struct {
	*harness.Service

	app     *fiber.App
	protect fiber.Handler
}

// options are the differences of a service. The zero value has every default.
type options struct {
	fiber fiber.Config
	store store.Store
	guard protocol.Config
	scope reprisefiber.Scope
	on    func(*fiber.App) harness.Host // Fiber's own server
}

func fibers(app *fiber.App) harness.Host {
	return harness.Host{Serve: app.Listener, Shutdown: app.ShutdownWithContext}
}

// serve serves the routes that are added by route, until the test ends.
func serve(t *testing.T, o options, route func(*service)) *service {
	t.Helper()
	if o.store == nil {
		o.store = memstore.New()
	}
	if o.scope == nil {
		o.scope = reprisefiber.Unscoped
	}
	if o.on == nil {
		o.on = fibers
	}
	o.fiber.DisableStartupMessage = true
	s := &service{Service: harness.New(t, o.store, o.guard), app: fiber.New(o.fiber)}
	s.protect = reprisefiber.Middleware(s.Guard, o.scope)
	route(s)
	s.Serve(o.on(s.app))
	return s
}

// handle serves POST /x by h, which is counted, behind the middleware and the handlers
// outside.
func handle(h fiber.Handler, outside ...fiber.Handler) func(*service) {
	return func(s *service) {
		s.app.Post("/x", append(outside, s.protect, s.counted(h))...)
	}
}

func (s *service) counted(h fiber.Handler) fiber.Handler {
	return func(c *fiber.Ctx) error {
		s.Runs.Add(1)
		return h(c)
	}
}
