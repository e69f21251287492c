// Gin-redis books seats, on Gin with records in Redis: a client that got no response
// retries, at any process, and gets the seat that it already has. A process that dies
// between a booking and its record leaves a seat empty; echo-postgres has no such gap.
//
//	REDIS_ADDR=127.0.0.1:6379 go run ./examples/gin-redis
//	curl -i -X POST -u ada:pw-of-ada localhost:8080/shows/hamlet/seats -H 'Idempotency-Key: 7c1f'
//	curl -i -X POST -u ada:pw-of-ada localhost:8080/shows/hamlet/seats -H 'Idempotency-Key: 7c1f'   # the same seat
//	curl -i -X POST -u bob:pw-of-bob localhost:8080/shows/hamlet/seats -H 'Idempotency-Key: 7c1f'   # a key belongs to a user
//
//run:background until 8080; needs redis; prints "Idempotent-Replayed: true"; prints "{\"for\":\"bob\",\"seat\":2}"
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

	"github.com/gin-gonic/gin"
	"github.com/redis/go-redis/v9"

	reprisegin "github.com/reprise-go/reprise/adapters/gin"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
	repriseredis "github.com/reprise-go/reprise/store/redis"
)

func main() {
	if err := serve(); err != nil {
		slog.Error("gin-redis", slog.Any("error", err))
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
	store, err := repriseredis.Open(ctx, client, repriseredis.Config{Prefix: "tickets:"}) // refuses a Redis on which a guarantee does not hold
	if err != nil {
		return fmt.Errorf("%w; the program needs Redis 7.0 or newer at REDIS_ADDR (Debian and Ubuntu: apt-get install redis-server)", err)
	}
	router, guard, err := newRouter(client, store)
	if err != nil {
		return err
	}
	server := &http.Server{Addr: "127.0.0.1:8080", Handler: router, ReadHeaderTimeout: 5 * time.Second}
	failed := make(chan error, 1)
	go func() { failed <- server.ListenAndServe() }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), 15*time.Second)
		defer cancel()
		return errors.Join(server.Shutdown(closing), guard.Close(closing)) // first the requests, then their background work
	}
}

// newRouter returns the API and its guard, which the caller closes. It refuses a Redis
// on which a guarantee does not hold.
func newRouter(client redis.UniversalClient, store store.Store) (*gin.Engine, *protocol.Guard, error) {
	guard, err := protocol.New(store, protocol.Config{Required: true})
	if err != nil {
		return nil, nil, err
	}
	router := gin.New()
	router.Use(gin.Recovery(), gin.BasicAuth(gin.Accounts{"ada": "pw-of-ada", "bob": "pw-of-bob"})) // outside the middleware: a key belongs to a user
	user := func(c *gin.Context) (string, error) { return c.GetString(gin.AuthUserKey), nil }
	router.POST("/shows/:show/seats", reprisegin.Middleware(guard, user), func(c *gin.Context) {
		seat, err := client.Incr(c.Request.Context(), "seats:"+c.Param("show")).Result()
		switch {
		case err != nil:
			_ = c.AbortWithError(http.StatusServiceUnavailable, err) // not kept: the retry runs again
		case seat > 3:
			c.JSON(http.StatusConflict, gin.H{"error": "sold out"}) // a response like any other: replayed
		default:
			c.JSON(http.StatusCreated, gin.H{"seat": seat, "for": c.GetString(gin.AuthUserKey)})
		}
	})
	return router, guard, nil
}
