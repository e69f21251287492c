// Payments-river takes orders and charges a bank for them, once each.
//
// One PostgreSQL transaction holds the order, the job that charges the bank, and the
// response that retries get: all of them commit, or none. River repeats the job until the
// bank has answered. The job sends a key that is derived from the client's key, so the
// bank charges once however often it is asked. By reprise.Do it books the charge once,
// however often River runs it. Kill the process at any moment.
//
//	GOWORK=off go run -C examples/payments-river . -postgres-url postgres://localhost/postgres -bank-url http://localhost:9090
//	curl -i localhost:8080/orders -H 'Idempotency-Key: 7c1f' -d '{"amount":500,"note":"lunch"}'
//
//run:long; background until 8080; needs postgres; prints "HTTP/1.1 202"
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

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	reprisehttp "github.com/reprise-go/reprise/adapters/nethttp"
	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/protocol"
	reprisepg "github.com/reprise-go/reprise/store/postgres"
)

//go:embed schema.sql
var schema string

func main() {
	addr := flag.String("addr", "127.0.0.1:8080", "where to listen")
	url := flag.String("postgres-url", "postgres://127.0.0.1/postgres", "the database, in which the program creates its tables")
	bank := flag.String("bank-url", "http://127.0.0.1:9090", "the bank")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := serve(ctx, *addr, *url, *bank)
	stop()
	if err != nil {
		slog.Error("payments-river", slog.Any("error", err))
		os.Exit(1)
	}
}

// serve runs the service until ctx ends. Then it waits for running requests, and for the
// jobs that run.
func serve(ctx context.Context, addr, url, bank string) error {
	c, err := pgxpool.ParseConfig(url)
	if err != nil {
		return err
	}
	c.MaxConns = 20 // a request holds one for its handler, a job for its statements
	pool, err := pgxpool.NewWithConfig(ctx, c)
	if err != nil {
		return err
	}
	defer pool.Close()
	config := reprisepg.Config{TxTimeout: 10 * time.Second}
	if err := migrate(ctx, pool, config); err != nil {
		return fmt.Errorf("%w; the program needs PostgreSQL 15 or newer at -postgres-url (Debian and Ubuntu: apt-get install postgresql)", err)
	}
	store, err := reprisepg.OpenTransactional(ctx, pool, config)
	if err != nil {
		return err
	}
	guard, err := protocol.New(store, protocol.Config{Required: true})
	if err != nil {
		return err
	}
	jobs, err := newJobs(pool, guard.Engine(), bank)
	if err != nil {
		return err
	}
	if err := jobs.Start(context.WithoutCancel(ctx)); err != nil {
		return err
	}

	mux := http.NewServeMux()
	mux.Handle("POST /orders", reprisehttp.Middleware(guard, customer)(orders{jobs}))
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
	return errors.Join(server.Shutdown(closing), jobs.Stop(closing), guard.Close(closing))
}

// migrate creates the missing tables: the orders, River's tables and Reprise's. If
// several processes start at once, one does so and the others wait; the lock ends with
// the connection.
func migrate(ctx context.Context, pool *pgxpool.Pool, config reprisepg.Config) error {
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return err
	}
	alone := conn.Hijack()
	defer alone.Close(context.WithoutCancel(ctx))
	if _, err := alone.Exec(ctx, `SELECT pg_advisory_lock(hashtext('payments-river'))`); err != nil {
		return err
	}
	if _, err := alone.Exec(ctx, schema); err != nil {
		return err
	}
	migrator, err := rivermigrate.New(riverpgxv5.New(pool), &rivermigrate.Config{Logger: errorsOnly})
	if err != nil {
		return err
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return err
	}
	return reprisepg.Migrate(ctx, pool, config)
}

// errorsOnly is River's log: the results of jobs are in its table.
var errorsOnly = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))

// newJobs returns River with the one job of this service. If a process dies, the process
// that then leads River finds its running jobs again.
func newJobs(pool *pgxpool.Pool, engine *reprise.Engine, bank string) (*river.Client[pgx.Tx], error) {
	workers := river.NewWorkers()
	if err := river.AddWorkerSafely(workers, &charger{engine: engine, bank: bank}); err != nil {
		return nil, err
	}
	return river.NewClient(riverpgxv5.New(pool), &river.Config{
		Queues:               map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 5}},
		Workers:              workers,
		JobTimeout:           5 * time.Second,
		RescueStuckJobsAfter: 6 * time.Second, // longer than a job may take
		Logger:               errorsOnly,

		CancelledJobRetentionPeriod: -1, // a parked job is kept until a person has seen it
	})
}

// customer names the owner of a key. A real service takes it from the credentials that it
// checked.
func customer(r *http.Request) (string, error) {
	if user, _, ok := r.BasicAuth(); ok {
		return user, nil
	}
	return "anonymous", nil
}
