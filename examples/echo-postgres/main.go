// Echo-postgres sells tickets, on Echo with PostgreSQL: the rows that a handler writes
// and the response that its retries get commit together, or not at all.
//
//	DATABASE_URL=postgres://127.0.0.1/postgres go run ./examples/echo-postgres
//	curl -i -X POST -H 'X-Buyer: ada' localhost:8080/shows/hamlet/tickets -H 'Idempotency-Key: 7c1f'
//	curl -i -X POST -H 'X-Buyer: ada' localhost:8080/shows/hamlet/tickets -H 'Idempotency-Key: 7c1f'   # the same ticket
//	curl -i -X POST -H 'X-Buyer: bob' localhost:8080/shows/hamlet/tickets -H 'Idempotency-Key: 7c1f'   # a key belongs to a buyer
//	curl -i -X POST -H 'X-Buyer: eve' localhost:8080/shows/hamlet/tickets -H 'Idempotency-Key: 7c1f'   # 409: the ticket is undone
//	psql postgres://127.0.0.1/postgres -c 'SELECT count(*) AS sold FROM tickets'
//
//run:background until 8080; needs postgres; prints "Idempotent-Replayed: true"; prints "{\"ticket\":2}"; prints "409 Conflict"; prints " sold \n------\n    2\n"
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/labstack/echo/v4"

	repriseecho "github.com/reprise-go/reprise/adapters/echo"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
	reprisepg "github.com/reprise-go/reprise/store/postgres"
)

func main() {
	if err := serve(); err != nil {
		slog.Error("echo-postgres", slog.Any("error", err))
		os.Exit(1)
	}
}

func serve() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	config, err := pgxpool.ParseConfig(os.Getenv("DATABASE_URL"))
	if err != nil {
		return err
	}
	config.MaxConns = 16 // a handler holds one while it runs; pgx's default is the number of cores, at least 4
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return err
	}
	defer pool.Close()
	store, err := openStore(ctx, pool)
	if err != nil {
		return fmt.Errorf("%w; the program needs PostgreSQL 15 or newer at DATABASE_URL (Debian and Ubuntu: apt-get install postgresql)", err)
	}
	e, guard, err := newAPI(store)
	if err != nil {
		return err
	}
	failed := make(chan error, 1)
	go func() { failed <- e.Start("127.0.0.1:8080") }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), 15*time.Second)
		defer cancel()
		return errors.Join(e.Shutdown(closing), guard.Close(closing)) // first the requests, then their background work
	}
}

// openStore creates the tables and opens the store, which refuses a server on which a
// guarantee does not hold.
func openStore(ctx context.Context, pool *pgxpool.Pool) (*reprisepg.Store, error) {
	_, err := pool.Exec(ctx, `CREATE TABLE IF NOT EXISTS shows (name text PRIMARY KEY, seats int NOT NULL);
		CREATE TABLE IF NOT EXISTS tickets (id bigint GENERATED ALWAYS AS IDENTITY, buyer text NOT NULL, show text NOT NULL);
		INSERT INTO shows VALUES ('hamlet', 2) ON CONFLICT DO NOTHING`)
	if err := errors.Join(err, reprisepg.Migrate(ctx, pool, reprisepg.Config{})); err != nil {
		return nil, err
	}
	return reprisepg.Open(ctx, pool, reprisepg.Config{})
}

// newAPI returns the API and its guard, which the caller closes.
func newAPI(store store.Store) (*echo.Echo, *protocol.Guard, error) {
	guard, err := protocol.New(store, protocol.Config{Required: true, Transactional: true})
	if err != nil {
		return nil, nil, err
	}
	e := echo.New()
	buyer := func(c echo.Context) (string, error) { return c.Request().Header.Get("X-Buyer"), nil } // a real service authenticates the buyer
	e.POST("/shows/:show/tickets", buy, repriseecho.Middleware(guard, buyer))
	return e, guard, nil
}

func buy(c echo.Context) error {
	ctx := c.Request().Context()
	tx, err := reprisepg.Tx(ctx) // a 4xx or 5xx undoes its writes
	if err != nil {
		return err
	}
	var id, seats int64
	err = tx.QueryRow(ctx, `WITH ticket AS (INSERT INTO tickets (buyer, show) VALUES ($1, $2) RETURNING id),
			seat AS (UPDATE shows SET seats = seats - 1 WHERE name = $2 AND seats > 0 RETURNING name)
		SELECT id, (SELECT count(*) FROM seat) FROM ticket`, c.Request().Header.Get("X-Buyer"), c.Param("show")).Scan(&id, &seats)
	if err == nil && seats == 0 {
		err = echo.NewHTTPError(http.StatusConflict, "sold out") // kept, and replayed
	}
	if err != nil {
		return err
	}
	return c.JSON(http.StatusCreated, echo.Map{"ticket": id})
}
