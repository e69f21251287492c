package reprisefiber3_test

import (
	"net"
	"slices"
	"testing"

	"github.com/gofiber/fiber/v3"

	reprisefiber3 "github.com/reprise-go/reprise/adapters/fiber3"
	"github.com/reprise-go/reprise/adapters/internal/fasthttp/harness"
	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
)

// fibers is Fiber's own server.
func fibers(app *fiber.App) harness.Host {
	listen := fiber.ListenConfig{DisableStartupMessage: true}
	return harness.Host{Serve: func(ln net.Listener) error { return app.Listener(ln, listen) }, Shutdown: app.ShutdownWithContext}
}

// service is a Fiber app on a real listener, with the middleware over a store.
type service struct {
	*harness.Service

	app *fiber.App
}

// serve serves the app until the test ends. route adds routes to it, with the middleware.
func serve(t *testing.T, app *fiber.App, route func(s *service, protect fiber.Handler)) *service {
	t.Helper()
	return serveOn(t, fibers, app, memstore.New(), protocol.Config{}, route)
}

// serveOn is serve on a host, with a policy over a store.
func serveOn(
	t *testing.T, on func(*fiber.App) harness.Host, app *fiber.App, st store.Store, policy protocol.Config, route func(s *service, protect fiber.Handler),
) *service {
	t.Helper()
	s := &service{harness.New(t, st, policy), app}
	route(s, reprisefiber3.Middleware(s.Guard, reprisefiber3.Unscoped))
	s.Serve(on(app))
	return s
}

// serveOne serves one handler, which is counted, behind the layers outside and the
// middleware, and in front of it the layers inside.
func serveOne(t *testing.T, preset reprise.Preset, outside, inside []any, h fiber.Handler) *service {
	t.Helper()
	return serveOn(t, fibers, fiber.New(), memstore.New(), protocol.Config{Preset: preset}, chain(outside, inside, h))
}

// chain routes to a handler, which is counted, as serveOne does.
func chain(outside, inside []any, h fiber.Handler) func(*service, fiber.Handler) {
	return func(s *service, protect fiber.Handler) {
		all := slices.Concat(outside, []any{protect}, inside, []any{func(c fiber.Ctx) error {
			s.Runs.Add(1)
			return h(c)
		}})
		s.app.Post("/x", all[0], all[1:]...)
	}
}
