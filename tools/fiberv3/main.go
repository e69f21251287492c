// Fiberv3 serves POST /t/orders on Fiber v3: bare, or with Fiber's own idempotency
// middleware. It is a module of its own because Fiber v3 wants another fasthttp than
// Fiber v2. The benchmarks in lab/bench start it.
//
//	fiberv3 -variant bare | own-memory
package main

import (
	"flag"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/gofiber/fiber/v3"
	"github.com/gofiber/fiber/v3/middleware/idempotency"

	"github.com/reprise-go/reprise/tools/peers/order"
)

func main() {
	if err := serve(); err != nil {
		fmt.Fprintln(os.Stderr, "fiberv3:", err)
		os.Exit(1)
	}
}

func serve() error {
	variant := flag.String("variant", "bare", "which middleware")
	flag.Parse()
	app := fiber.New()
	switch *variant {
	case "bare":
		app.Post("/t/orders", create)
	case "own-memory":
		app.Post("/t/orders", idempotency.New(idempotency.Config{KeyHeader: "Idempotency-Key", Lifetime: 30 * time.Minute}), create)
	default:
		return fmt.Errorf("no variant %q", *variant)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it ends with the process
	if err != nil {
		return err
	}
	fmt.Printf("listening on %s\n", ln.Addr())
	return app.Listener(ln, fiber.ListenConfig{DisableStartupMessage: true})
}

var body = []byte(order.Body)

func create(c fiber.Ctx) error {
	c.Set(fiber.HeaderContentType, order.ContentType)
	return c.Status(fiber.StatusCreated).Send(body)
}
