// Fiber3 sells gift cards, on Fiber v3 with records in MariaDB: a retry creates no second
// card, and gets the code of the first, from any process.
//
//	DATABASE_URL='root@tcp(127.0.0.1:3306)/test?interpolateParams=true' GOWORK=off go run -C examples/fiber3 .
//	curl -i localhost:8080/cards --oauth2-bearer acme-token -H 'Idempotency-Key: 7c1f' --json '{"amount":2500}'   # twice
//
//run:background until 8080; needs mariadb; prints "HTTP/1.1 201"
package main

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	_ "github.com/go-sql-driver/mysql" // the driver
	"github.com/gofiber/fiber/v3"
	"github.com/gofiber/fiber/v3/middleware/recover"

	reprisefiber3 "github.com/reprise-go/reprise/adapters/fiber3"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
	reprisemysql "github.com/reprise-go/reprise/store/mysql"
)

func main() {
	if err := serve(); err != nil {
		slog.Error("fiber3", slog.Any("error", err))
		os.Exit(1)
	}
}

func serve() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	db, err := sql.Open("mysql", os.Getenv("DATABASE_URL"))
	if err != nil {
		return err
	}
	defer db.Close()
	records, err := openStore(ctx, db)
	if err != nil {
		return fmt.Errorf("%w; the program needs MariaDB 10.6 or newer at DATABASE_URL (Debian and Ubuntu: apt-get install mariadb-server)", err)
	}
	app, guard, err := newApp(records, func(context.Context, int) string { return rand.Text() })
	if err != nil {
		return err
	}
	err = app.Listen("127.0.0.1:8080", fiber.ListenConfig{
		DisableStartupMessage: true, GracefulContext: ctx, ShutdownTimeout: 10 * time.Second, // returns after the requests have ended
	})
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	return errors.Join(err, guard.Close(closing)) // and now their background work
}

// openStore creates the tables and opens the store, which refuses a server on which a
// guarantee does not hold.
func openStore(ctx context.Context, db *sql.DB) (store.Store, error) {
	if err := reprisemysql.Migrate(ctx, db, reprisemysql.Config{}); err != nil {
		return nil, err
	}
	return reprisemysql.Open(ctx, db, reprisemysql.Config{})
}

// newApp returns the API and its guard, which the caller closes. issue makes the code of
// a card, within the context of its run.
func newApp(records store.Store, issue func(ctx context.Context, amount int) (code string)) (*fiber.App, *protocol.Guard, error) {
	guard, err := protocol.New(records, protocol.Config{Required: true})
	if err != nil {
		return nil, nil, err
	}
	app := fiber.New()
	app.Use(recover.New(), authenticate) // a key belongs to a shop
	app.Post("/cards", reprisefiber3.Middleware(guard, shopOf), func(c fiber.Ctx) error {
		var card struct {
			Amount int `json:"amount"`
		}
		if err := c.Bind().JSON(&card); err != nil || card.Amount <= 0 {
			return fiber.NewError(fiber.StatusUnprocessableEntity, "a card needs an amount") // replayed as well
		}
		return c.Status(fiber.StatusCreated).JSON(fiber.Map{"amount": card.Amount, "code": issue(c.Context(), card.Amount)})
	})
	return app, guard, nil
}

// authenticate accepts requests with the token of a shop.
func authenticate(c fiber.Ctx) error {
	shop, known := map[string]string{"Bearer acme-token": "acme", "Bearer globex-token": "globex"}[c.Get(fiber.HeaderAuthorization)]
	if !known {
		return fiber.ErrUnauthorized
	}
	c.Locals("shop", shop)
	return c.Next()
}

func shopOf(c fiber.Ctx) (string, error) { return fiber.Locals[string](c, "shop"), nil }
