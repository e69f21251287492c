// Payments moves money between accounts, exactly once for each Idempotency-Key: the rows
// of a transfer and the response that its retries get commit in one PostgreSQL
// transaction, or not at all. Kill it at any moment and retry.
//
//	go run ./examples/payments -postgres-url postgres://localhost/postgres
//	curl -i localhost:8080/transfers -H 'Idempotency-Key: 7c1f' -d '{"from":"alice","to":"bob","amount":5,"note":"lunch"}'
//
//run:background until 8080; needs postgres; prints "HTTP/1.1 201"
package main

import (
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	reprisehttp "github.com/reprise-go/reprise/adapters/nethttp"
	"github.com/reprise-go/reprise/core/protocol"
	reprisepg "github.com/reprise-go/reprise/store/postgres"
)

//go:embed schema.sql
var schema string

func main() {
	addr := flag.String("addr", "127.0.0.1:8080", "where to listen")
	url := flag.String("postgres-url", "postgres://127.0.0.1/postgres", "the database; the schema reprise_example is made in it")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := serve(ctx, *addr, *url)
	stop()
	if err != nil {
		slog.Error("payments", slog.Any("error", err))
		os.Exit(1)
	}
}

// serve runs the service until ctx ends, and then waits for running requests.
func serve(ctx context.Context, addr, url string) error {
	pool, err := pgxpool.New(ctx, url)
	if err != nil {
		return err
	}
	defer pool.Close()
	if _, err := pool.Exec(ctx, schema); err != nil {
		return fmt.Errorf("%w; the program needs PostgreSQL 15 or newer at -postgres-url (Debian and Ubuntu: apt-get install postgresql)", err)
	}
	config := reprisepg.Config{Schema: "reprise_example", TxTimeout: 10 * time.Second}
	if err := reprisepg.Migrate(ctx, pool, config); err != nil {
		return err
	}
	store, err := reprisepg.OpenTransactional(ctx, pool, config)
	if err != nil {
		return err
	}
	guard, err := protocol.New(store, protocol.Config{Required: true})
	if err != nil {
		return err
	}

	mux := http.NewServeMux()
	mux.Handle("POST /transfers", reprisehttp.Middleware(guard, customer)(http.HandlerFunc(transfer)))
	mux.HandleFunc("GET /accounts", accounts(pool))
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	fmt.Println("listening on", listener.Addr())

	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), 15*time.Second)
	defer cancel()
	return errors.Join(server.Shutdown(closing), guard.Close(closing)) // first the requests, then their background work
}

// customer names the owner of a key. A real service takes it from the credentials that it
// checked.
func customer(r *http.Request) (string, error) {
	if user, _, ok := r.BasicAuth(); ok {
		return user, nil
	}
	return "anonymous", nil
}
