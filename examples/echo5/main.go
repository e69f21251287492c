// Echo5 takes names for a workshop, on Echo v5 with records in a file of SQLite: its
// error handler writes the responses of the errors that handlers return, and retries get
// those as well, also after a restart.
//
//	RECORDS=workshop.db go run ./examples/echo5
//	curl -i -X POST -u ada:pw-of-ada localhost:8080/places -H 'Idempotency-Key: 7c1f'   # twice
//
//run:background until 8080; prints "HTTP/1.1 201"
package main

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/labstack/echo/v5"
	"github.com/labstack/echo/v5/middleware"
	_ "modernc.org/sqlite" // the driver

	repriseecho5 "github.com/reprise-go/reprise/adapters/echo5"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
	reprisesqlite "github.com/reprise-go/reprise/store/sqlite"
)

func main() {
	if err := serve(); err != nil {
		slog.Error("echo5", slog.Any("error", err))
		os.Exit(1)
	}
}

func serve() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	db, err := sql.Open("sqlite", "file:"+os.Getenv("RECORDS")+"?_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)")
	if err != nil {
		return err
	}
	defer db.Close()
	records, err := openStore(ctx, db)
	if err != nil {
		return err
	}
	e, guard, err := newAPI(records, 2)
	if err != nil {
		return err
	}
	config := echo.StartConfig{Address: "127.0.0.1:8080", GracefulTimeout: 10 * time.Second}
	err = config.Start(ctx, e) // returns after the requests have ended
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	return errors.Join(err, guard.Close(closing)) // and now their background work
}

// openStore creates the tables and opens the store, which refuses a file on which a
// guarantee does not hold.
func openStore(ctx context.Context, db *sql.DB) (store.Store, error) {
	if err := reprisesqlite.Migrate(ctx, db, reprisesqlite.Config{}); err != nil {
		return nil, err
	}
	return reprisesqlite.Open(ctx, db, reprisesqlite.Config{})
}

// newAPI returns the API of a workshop with so many places, and its guard, which the
// caller closes.
func newAPI(records store.Store, places int64) (*echo.Echo, *protocol.Guard, error) {
	guard, err := protocol.New(records, protocol.Config{Required: true})
	if err != nil {
		return nil, nil, err
	}
	e := echo.New()
	e.HTTPErrorHandler = func(c *echo.Context, err error) {
		status, text := http.StatusInternalServerError, "something went wrong" // not kept: the retry runs again
		var coded echo.HTTPStatusCoder
		if errors.As(err, &coded) {
			status, text = coded.StatusCode(), err.Error()
		}
		_ = c.JSON(status, map[string]string{"error": text})
	}
	e.Use(middleware.Recover(), middleware.BasicAuth(known)) // outside: a key belongs to a user
	user := func(c *echo.Context) (string, error) {
		name, _, known := c.Request().BasicAuth()
		if !known {
			return "", errors.New("not authenticated")
		}
		return name, nil
	}
	var taken atomic.Int64
	e.POST("/places", func(c *echo.Context) error {
		place := taken.Add(1)
		if place > places {
			return refusal("the workshop is full") // becomes a response like any other: replayed
		}
		name, _ := user(c)
		return c.JSON(http.StatusCreated, map[string]any{"place": place, "for": name})
	}, repriseecho5.Middleware(guard, user))
	return e, guard, nil
}

// refusal is an error with a status, as Echo v5 looks for it.
type refusal string

func (r refusal) Error() string { return string(r) }

// StatusCode implements [echo.HTTPStatusCoder].
func (r refusal) StatusCode() int { return http.StatusConflict }

// known accepts two users.
func known(_ *echo.Context, user, password string) (bool, error) {
	return (user == "ada" || user == "bob") && password == "pw-of-"+user, nil
}
