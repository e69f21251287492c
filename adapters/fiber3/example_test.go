package reprisefiber3_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/gofiber/fiber/v3"

	reprisefiber3 "github.com/reprise-go/reprise/adapters/fiber3"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/protocol"
)

func ExampleMiddleware() {
	guard, err := protocol.New(memstore.New(), protocol.Config{Required: true})
	if err != nil {
		panic(err)
	}
	defer guard.Close(context.Background())

	tenantOf := func(c fiber.Ctx) (string, error) { // the authenticated principal of the request
		tenant, _ := c.Locals("tenant").(string)
		return tenant, nil
	}
	orders := 0
	createOrder := func(c fiber.Ctx) error {
		orders++
		if orders == 1 {
			protocol.Release(c.Context()) // sold out today: the next request with the key runs again
			return fiber.NewError(fiber.StatusConflict, "sold out")
		}
		return c.Status(fiber.StatusCreated).SendString(fmt.Sprint("order ", orders))
	}
	app := fiber.New()
	app.Use(func(c fiber.Ctx) error {
		c.Locals("tenant", "acme")
		return c.Next()
	})
	app.Post("/orders", reprisefiber3.Middleware(guard, tenantOf), createOrder)

	for range 3 {
		r := httptest.NewRequestWithContext(context.Background(), http.MethodPost, "/orders", strings.NewReader("book"))
		r.Header.Set("Idempotency-Key", "order-1")
		resp, err := app.Test(r)
		if err != nil {
			panic(err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		fmt.Printf("%s %s, replayed %q\n", resp.Status, body, resp.Header.Get("Idempotent-Replayed"))
	}

	// Output:
	// 409 Conflict sold out, replayed ""
	// 201 Created order 2, replayed ""
	// 201 Created order 2, replayed "true"
}
