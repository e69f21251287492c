// Fiberv3 serves POST /t/orders on Fiber v3: bare, with Fiber's own idempotency
// middleware, or with Reprise.
//
//	fiberv3 -variant bare | own-memory | own-redis | reprise-memory | reprise-redis | alone-redis [-redis ADDR]
package main

import (
	"net"

	"github.com/gofiber/fiber/v3"
	"github.com/gofiber/fiber/v3/middleware/idempotency"
	fiberredis "github.com/gofiber/storage/redis/v3"

	reprisefiber3 "github.com/reprise-go/reprise/adapters/fiber3"
	"github.com/reprise-go/reprise/tools/peers/guards"
)

func main() { guards.Main("fiberv3", start) }

func start(variant, redisAddr string) (func(net.Listener) error, error) {
	app := fiber.New()
	chain, err := newMiddleware(variant, redisAddr)
	if err != nil {
		return nil, err
	}
	chain = append(chain, create)
	app.Post("/t/orders", chain[0], chain[1:]...)
	return func(ln net.Listener) error { return app.Listener(ln, fiber.ListenConfig{DisableStartupMessage: true}) }, nil
}

func create(c fiber.Ctx) error {
	c.Set(fiber.HeaderContentType, "application/json")
	return c.Status(fiber.StatusCreated).Send(guards.Body)
}

func newMiddleware(variant, redisAddr string) ([]any, error) {
	own := idempotency.Config{KeyHeader: guards.Header, Lifetime: guards.Retention}
	switch variant {
	case "bare":
		return nil, nil
	case "own-redis":
		own.Storage = fiberredis.New(fiberredis.Config{Addrs: []string{redisAddr}})
		return []any{idempotency.New(own)}, nil
	case "own-memory":
		return []any{idempotency.New(own)}, nil
	}
	guard, err := guards.New(variant, redisAddr)
	if err != nil {
		return nil, err
	}
	return []any{reprisefiber3.Middleware(guard, reprisefiber3.Unscoped)}, nil
}
