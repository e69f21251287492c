// Bank pays through a bank that may book a payment and lose the answer. If the bank
// answered, the answer is kept and replayed. If the request was not sent, the key is
// released, so that a retry runs. If the outcome is unknown, retries neither run nor are
// replayed until a reconciler has asked the bank.
//
//	go run ./examples/bank -store redis://localhost:6379
//	curl -i localhost:8080/payments -H 'Idempotency-Key: 7c1f' -d '{"reference":"order 1","cents":500}'
//	curl -i localhost:8080/payments -H 'Idempotency-Key: 7c20' -d '{"reference":"order 2","cents":13}'   # the answer is lost; repeat it for 20 seconds
//
//run:background until 8080; needs redis; prints "HTTP/1.1 201"; prints "HTTP/1.1 504"
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"

	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/store"
	reprisepg "github.com/reprise-go/reprise/store/postgres"
	repriseredis "github.com/reprise-go/reprise/store/redis"
)

func main() {
	addr := flag.String("addr", "127.0.0.1:8080", "where to listen")
	records := flag.String("store", "", "the URL of a Redis or of a PostgreSQL database; empty keeps the records in memory")
	bank := flag.String("bank", "", "the URL of the bank; empty starts a pretend bank")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx, *addr, *records, *bank)
	stop()
	if err != nil {
		slog.Error("bank", slog.Any("error", err))
		os.Exit(1)
	}
}

func run(ctx context.Context, addr, records, bank string) error {
	st, closeStore, err := openStore(ctx, records)
	if err != nil {
		return fmt.Errorf("%w; the program needs Redis 7.0 or PostgreSQL 15, or newer, at -store (Debian and Ubuntu: apt-get install redis-server postgresql)", err)
	}
	defer closeStore()
	if bank == "" {
		pretended := httptest.NewServer(newPretendBank())
		defer pretended.Close()
		bank = pretended.URL
	}
	s, err := newService(st, bank, nil, defaultLimits)
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

// openStore opens the store at a URL, whose scheme says which store it is.
func openStore(ctx context.Context, url string) (_ store.Store, closeStore func(), err error) {
	switch {
	case url == "":
		return memstore.New(), func() {}, nil
	case strings.HasPrefix(url, "redis"):
		options, err := redis.ParseURL(url)
		if err != nil {
			return nil, nil, err
		}
		options.ContextTimeoutEnabled = true // else go-redis ignores the deadlines of the engine
		client := redis.NewClient(options)
		st, err := repriseredis.Open(ctx, client, repriseredis.Config{Prefix: "example:bank:"})
		if err != nil {
			return nil, nil, errors.Join(err, client.Close())
		}
		return st, func() { _, _ = st.Close(), client.Close() }, nil
	default:
		pool, err := pgxpool.New(ctx, url)
		if err != nil {
			return nil, nil, err
		}
		st, err := openPostgres(ctx, pool)
		if err != nil {
			pool.Close()
			return nil, nil, err
		}
		return st, pool.Close, nil
	}
}

func openPostgres(ctx context.Context, pool *pgxpool.Pool) (store.Store, error) {
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
