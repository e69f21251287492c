// Fiberv2 serves POST /t/orders on Fiber v2: bare, with Fiber's own idempotency
// middleware, with Reprise, or with the floor: the minimal middleware with fingerprints
// and owners.
//
//	fiberv2 -variant bare | floor-memory | own-memory | own-redis | reprise-memory | reprise-redis | alone-redis [-redis ADDR]
package main

import (
	"flag"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/gofiber/fiber/v2/middleware/idempotency"
	fiberredis "github.com/gofiber/storage/redis/v3"
	"github.com/redis/go-redis/v9"

	reprisefiber "github.com/reprise-go/reprise/adapters/fiber"
	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/protocol"
	repriseredis "github.com/reprise-go/reprise/store/redis"
)

const (
	header    = "Idempotency-Key"
	retention = 30 * time.Minute // the default of Fiber's own middleware
)

func main() {
	if err := serve(); err != nil {
		fmt.Fprintln(os.Stderr, "fiberv2:", err)
		os.Exit(1)
	}
}

func serve() error {
	variant := flag.String("variant", "bare", "which middleware")
	redisAddr := flag.String("redis", "", "`address` of Redis, for the variants that need it")
	flag.Parse()
	app := fiber.New(fiber.Config{DisableStartupMessage: true})
	middleware, err := newMiddleware(*variant, *redisAddr)
	if err != nil {
		return err
	}
	app.Post("/t/orders", append(middleware, create)...)
	ln, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it ends with the process
	if err != nil {
		return err
	}
	fmt.Printf("listening on %s\n", ln.Addr())
	return app.Listener(ln)
}

// body is also the response of the lab's test server.
var body = []byte(`{"id":"ord_00000000000000000001","status":"created","currency":"EUR","amount":1999,"customer":"cus_000000000000000000000001",` +
	`"items":[{"sku":"sku_0001","quantity":1,"price":999},{"sku":"sku_0002","quantity":2,"price":500}],"created":"2026-01-01T00:00:00Z"}`)

func create(c *fiber.Ctx) error {
	c.Set(fiber.HeaderContentType, "application/json")
	return c.Status(fiber.StatusCreated).Send(body)
}

func newMiddleware(variant, redisAddr string) ([]fiber.Handler, error) {
	switch variant {
	case "bare":
		return nil, nil
	case "floor-memory":
		return []fiber.Handler{new(floor).handle}, nil
	case "own-memory":
		return []fiber.Handler{idempotency.New(idempotency.Config{KeyHeader: header, Lifetime: retention})}, nil
	case "own-redis":
		storage := fiberredis.New(fiberredis.Config{Addrs: []string{redisAddr}})
		return []fiber.Handler{idempotency.New(idempotency.Config{KeyHeader: header, Lifetime: retention, Storage: storage})}, nil
	case "reprise-memory":
		store, err := memstore.NewBounded(memstore.Bounds{Records: 10_000_000, Bytes: 4 << 30})
		if err != nil {
			return nil, err
		}
		return newReprise(store)
	case "reprise-redis", "alone-redis": // and without combining
		client := redis.NewClient(&redis.Options{Addr: redisAddr})
		store, err := repriseredis.New(client, repriseredis.Config{NoCombining: variant == "alone-redis"})
		if err != nil {
			return nil, err
		}
		return newReprise(store)
	default:
		return nil, fmt.Errorf("no variant %q", variant)
	}
}

func newReprise(store reprise.Store) ([]fiber.Handler, error) {
	guard, err := protocol.New(store, protocol.Config{Engine: reprise.Config{Retention: retention}})
	if err != nil {
		return nil, err
	}
	return []fiber.Handler{reprisefiber.Middleware(guard, reprisefiber.Unscoped)}, nil
}
