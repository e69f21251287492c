// Fiberv2 serves POST /t/orders on Fiber v2: bare, with Fiber's own idempotency
// middleware, with Reprise, or with the floor: the minimal middleware with fingerprints
// and owners.
//
//	fiberv2 -variant bare | floor-memory | own-memory | own-redis | reprise-memory | reprise-redis | alone-redis [-redis ADDR]
package main

import (
	"net"

	"github.com/gofiber/fiber/v2"
	"github.com/gofiber/fiber/v2/middleware/idempotency"
	fiberredis "github.com/gofiber/storage/redis/v3"

	reprisefiber "github.com/reprise-go/reprise/adapters/fiber"
	"github.com/reprise-go/reprise/tools/peers/guards"
)

func main() { guards.Main("fiberv2", start) }

func start(variant, redisAddr string) (func(net.Listener) error, error) {
	app := fiber.New(fiber.Config{DisableStartupMessage: true})
	middleware, err := newMiddleware(variant, redisAddr)
	if err != nil {
		return nil, err
	}
	app.Post("/t/orders", append(middleware, create)...)
	return app.Listener, nil
}

func create(c *fiber.Ctx) error {
	c.Set(fiber.HeaderContentType, "application/json")
	return c.Status(fiber.StatusCreated).Send(guards.Body)
}

func newMiddleware(variant, redisAddr string) ([]fiber.Handler, error) {
	own := idempotency.Config{KeyHeader: guards.Header, Lifetime: guards.Retention}
	switch variant {
	case "bare":
		return nil, nil
	case "own-redis":
		own.Storage = fiberredis.New(fiberredis.Config{Addrs: []string{redisAddr}})
		return []fiber.Handler{idempotency.New(own)}, nil
	case "own-memory":
		return []fiber.Handler{idempotency.New(own)}, nil
	}
	guard, err := guards.New(variant, redisAddr)
	if err != nil {
		return nil, err
	}
	return []fiber.Handler{reprisefiber.Middleware(guard, reprisefiber.Unscoped)}, nil
}
