// Payments pays through a bank that may book a payment and lose the answer. If the bank
// answered, the answer is kept and replayed. If the request was not sent, the key is
// released, so that a retry runs. If the outcome is unknown, retries neither run nor are
// replayed until a reconciler has asked the bank.
//
//	go run ./examples/payments -postgres-url postgres://localhost/postgres
//	curl -i localhost:8080/payments -H 'Idempotency-Key: 7c1f' -d '{"reference":"order 1","cents":500}'
//	curl -i localhost:8080/payments -H 'Idempotency-Key: 7c20' -d '{"reference":"order 2","cents":13}'   # the answer is lost; repeat it for 20 seconds
//
//run:background until 8080; needs postgres; prints "HTTP/1.1 201"; prints "HTTP/1.1 504"
package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/reprise-go/reprise/core/store"
	reprisepg "github.com/reprise-go/reprise/store/postgres"
)

// limits are the times of the service.
type limits struct {
	lease   time.Duration
	attempt time.Duration
	call    time.Duration
	settled time.Duration
	pause   time.Duration
}

func main() {
	var l limits
	addr := flag.String("addr", "127.0.0.1:8080", "`address` to listen on")
	url := flag.String("postgres-url", "postgres://127.0.0.1/postgres", "the database, in which the program creates its table")
	bank := flag.String("bank-url", "", "the bank; empty starts a pretend one")
	flag.DurationVar(&l.lease, "lease", 10*time.Second, "the record of a process that died lapses after this time")
	flag.DurationVar(&l.attempt, "attempt", 2*time.Second, "wait this long for an answer of the bank")
	flag.DurationVar(&l.call, "call", 5*time.Second, "ask the bank for this long")
	flag.DurationVar(&l.settled, "settled", 10*time.Second, "after this time the bank books nothing of a call any more; longer than -call and the bank's own limit together")
	flag.DurationVar(&l.pause, "pause", 5*time.Second, "wait this long between the rounds of the reconciler")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, *addr, *url, *bank, l)
	stop()
	if err != nil {
		slog.Error("payments", slog.Any("error", err))
		os.Exit(1)
	}
}

func run(ctx context.Context, addr, url, bank string, l limits) error {
	pool, err := pgxpool.New(ctx, url)
	if err != nil {
		return err
	}
	defer pool.Close()
	records, err := openStore(ctx, pool)
	if err != nil {
		return fmt.Errorf("%w; the program needs PostgreSQL 15 or newer at -postgres-url (Debian and Ubuntu: apt-get install postgresql)", err)
	}
	if bank == "" {
		pretended := httptest.NewServer(newPretendBank())
		defer pretended.Close()
		bank = pretended.URL
	}
	s, err := newService(records, bank, l)
	if err != nil {
		return err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	fmt.Println("listening on", listener.Addr())
	return s.serve(ctx, listener)
}

// openStore opens the store. No policy here is transactional: a payment is no row of this
// database.
func openStore(ctx context.Context, pool *pgxpool.Pool) (store.Store, error) {
	if err := reprisepg.Migrate(ctx, pool, reprisepg.Config{}); err != nil {
		return nil, err
	}
	return reprisepg.Open(ctx, pool, reprisepg.Config{})
}

// customer names the owner of a key. A real service takes it from the credentials that it
// checked.
func customer(r *http.Request) (string, error) {
	if user, _, ok := r.BasicAuth(); ok {
		return user, nil
	}
	return "anonymous", nil
}
