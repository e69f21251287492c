package reprisefiber_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/gofiber/fiber/v2"

	reprisefiber "github.com/reprise-go/reprise/adapters/fiber"
	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/protocol"
)

func Example() {
	engine, err := reprise.New(memstore.New(), reprise.Config{})
	if err != nil {
		panic(err)
	}
	guard, err := protocol.New(engine, protocol.Config{Required: true})
	if err != nil {
		panic(err)
	}
	tenantOf := func(c *fiber.Ctx) (string, error) { return c.Get("X-Tenant"), nil } // of what authenticated the request
	orders := 0
	app := fiber.New()
	app.Post("/orders", reprisefiber.Middleware(guard, tenantOf), func(c *fiber.Ctx) error {
		orders++
		return c.Status(fiber.StatusCreated).SendString(fmt.Sprint("order ", orders))
	})

	for range 2 {
		r := httptest.NewRequestWithContext(context.Background(), http.MethodPost, "/orders", strings.NewReader("book"))
		r.Header.Set("X-Tenant", "acme")
		r.Header.Set("Idempotency-Key", "order-1")
		resp, err := app.Test(r)
		if err != nil {
			panic(err)
		}
		body := make([]byte, resp.ContentLength)
		_, _ = resp.Body.Read(body)
		resp.Body.Close()
		fmt.Printf("%s %s, replayed %q\n", resp.Status, body, resp.Header.Get("Idempotent-Replayed"))
	}

	// Output:
	// 201 Created order 1, replayed ""
	// 201 Created order 1, replayed "true"
}
