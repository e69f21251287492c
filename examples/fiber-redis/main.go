// Fiber-redis sends text messages, on Fiber with records in Redis: a retry sends no
// message twice, in any process.
//
//	REDIS_ADDR=127.0.0.1:6379 go run ./examples/fiber-redis
//	curl -i localhost:8080/messages --oauth2-bearer acme-token -H 'Idempotency-Key: 7c1f' --json '{"To":"+49","Text":"hi"}'
//	curl -i localhost:8080/messages --oauth2-bearer acme-token -H 'Idempotency-Key: 7c1f' --json '{"To":"+49","Text":"hi"}'     # sends nothing
//	curl -i localhost:8080/messages --oauth2-bearer globex-token -H 'Idempotency-Key: 7c1f' --json '{"To":"+49","Text":"ho"}'   # a key belongs to a tenant
//
//run:background until 8080; needs redis; prints "Idempotent-Replayed: true"; prints "{\"To\":\"+49\",\"Text\":\"ho\"}"
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/gofiber/fiber/v2/middleware/recover"
	"github.com/redis/go-redis/v9"

	reprisefiber "github.com/reprise-go/reprise/adapters/fiber"
	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
	repriseredis "github.com/reprise-go/reprise/store/redis"
)

func main() {
	if err := serve(); err != nil {
		slog.Error("fiber-redis", slog.Any("error", err))
		os.Exit(1)
	}
}

func serve() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	client := redis.NewClient(&redis.Options{
		Addr:                  os.Getenv("REDIS_ADDR"),
		ContextTimeoutEnabled: true, // else go-redis ignores the deadlines of the engine
	})
	defer client.Close()
	store, err := repriseredis.Open(ctx, client, repriseredis.Config{Prefix: "messages:"}) // refuses a Redis on which a guarantee does not hold
	if err != nil {
		return fmt.Errorf("%w; the program needs Redis 7.0 or newer at REDIS_ADDR (Debian and Ubuntu: apt-get install redis-server)", err)
	}
	app, guard, err := newApp(store, func(to, _ string) { slog.Info("sent", slog.String("to", to)) })
	if err != nil {
		return err
	}
	failed := make(chan error, 1)
	go func() { failed <- app.Listen("127.0.0.1:8080") }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), 15*time.Second)
		defer cancel()
		return errors.Join(app.ShutdownWithContext(closing), guard.Close(closing)) // first the requests, then their background work
	}
}

// newApp returns the API and its guard, which the caller closes.
func newApp(store store.Store, send func(to, text string)) (*fiber.App, *protocol.Guard, error) {
	guard, err := protocol.New(store, protocol.Config{Required: true, Preset: reprise.AtMostOnce}) // a message cannot be taken back
	if err != nil {
		return nil, nil, err
	}
	app := fiber.New(fiber.Config{DisableStartupMessage: true})
	app.Use(recover.New(), authenticate) // a key belongs to a tenant
	tenantOf := func(c *fiber.Ctx) (string, error) { return c.Locals("tenant").(string), nil }
	app.Post("/messages", reprisefiber.Middleware(guard, tenantOf), func(c *fiber.Ctx) error {
		var m struct{ To, Text string }
		if err := c.BodyParser(&m); err != nil || m.To == "" {
			return fiber.NewError(fiber.StatusUnprocessableEntity, "a message needs a recipient") // replayed as well
		}
		send(m.To, m.Text)
		return c.Status(fiber.StatusCreated).JSON(m)
	})
	return app, guard, nil
}

// authenticate accepts requests with the token of a tenant.
func authenticate(c *fiber.Ctx) error {
	tenant, known := map[string]string{"Bearer acme-token": "acme", "Bearer globex-token": "globex"}[c.Get(fiber.HeaderAuthorization)]
	if !known {
		return fiber.ErrUnauthorized
	}
	c.Locals("tenant", tenant)
	return c.Next()
}
