// Quickstart is an orders API whose requests are safe to retry: the Idempotency-Key
// header on net/http, with records in memory, in a file of SQLite or in Redis.
//
//	go run ./examples/quickstart          # serve, and print curl lines to try
//	go run ./examples/quickstart -demo    # show the clients' responses, and check them
//
//run:background until 8080; prints "made 5 orders."
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	reprisehttp "github.com/reprise-go/reprise/adapters/nethttp"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/examples/internal/listen"
	repriseredis "github.com/reprise-go/reprise/store/redis"
)

func main() {
	if err := start(); err != nil {
		fmt.Fprintln(os.Stderr, "quickstart:", err)
		os.Exit(1)
	}
}

func start() error {
	addr := flag.String("addr", "", "`address` to listen on (default 127.0.0.1:8080, and a free port for -demo)")
	redisURL := flag.String("redis-url", "", "`URL` of the Redis that keeps the records (default: this process keeps them in memory)")
	file := flag.String("sqlite-file", "", "`file` of SQLite that keeps the records, so that they outlive the process")
	demo := flag.Bool("demo", false, "show what clients observe, check it, and exit")
	flag.Parse()
	if flag.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q: see -help", flag.Arg(0))
	}

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	store, err := openStore(ctx, *redisURL, *file)
	if err != nil {
		return err
	}
	if *demo {
		return runDemo(ctx, os.Stdout, cmp.Or(*addr, "127.0.0.1:0"), store)
	}
	return serve(ctx, os.Stdout, cmp.Or(*addr, "127.0.0.1:8080"), store)
}

// openStore opens the store. The rest of the program is the same for every store.
func openStore(ctx context.Context, redisURL, file string) (store.Store, error) {
	switch {
	case file != "":
		return openFile(ctx, file)
	case redisURL == "":
		return memstore.New(), nil
	}
	options, err := redis.ParseURL(redisURL)
	if err != nil {
		return nil, fmt.Errorf("-redis-url: %w", err)
	}
	options.ContextTimeoutEnabled = true // else go-redis ignores the deadlines of the engine
	store, err := repriseredis.Open(ctx, redis.NewClient(options), repriseredis.Config{Prefix: "orders:"})
	if err != nil {
		return nil, fmt.Errorf("-redis-url: %w", err)
	}
	return store, nil
}

// newAPI returns the API and its guard, which the caller closes when no request runs.
func newAPI(store store.Store, bank chargeFunc) (http.Handler, *protocol.Guard, error) {
	// A policy over the records of this process and the others. This one refuses orders
	// without a key.
	guard, err := protocol.New(store, protocol.Config{Required: true})
	if err != nil {
		return nil, nil, err
	}
	// One middleware per route. A key belongs to a tenant, so authentication comes before
	// it.
	api := &orders{bank: bank, byID: make(map[string]order)}
	mux := http.NewServeMux()
	mux.Handle("POST /orders", authenticate(reprisehttp.Middleware(guard, tenantOf)(http.HandlerFunc(api.create))))
	mux.Handle("GET /orders/{id}", authenticate(http.HandlerFunc(api.show)))
	return mux, guard, nil
}

// serve serves until ctx ends, and then waits for running requests.
func serve(ctx context.Context, out io.Writer, addr string, store store.Store) error {
	api, guard, err := newAPI(store, chargeNobody)
	if err != nil {
		return err
	}
	ln, err := listen.On(ctx, out, addr)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: api, ReadHeaderTimeout: 5 * time.Second}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(ln) }()
	fmt.Fprintf(out, usage, ln.Addr())
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	return errors.Join(server.Shutdown(closing), guard.Close(closing)) // first the requests, then their background work
}

const usage = `Serving orders on http://%[1]s. Send this twice, then once with another quantity, then without the key:

  curl -i http://%[1]s/orders -H 'Authorization: Bearer acme-token' -H 'Idempotency-Key: order-1' -d '{"item":"book","quantity":2}'

and look at what was ordered:

  curl -i http://%[1]s/orders/1 -H 'Authorization: Bearer acme-token'
`
