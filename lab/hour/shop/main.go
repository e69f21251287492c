// Shop is the service of the recorded hour: it pays through a bank, keeps its records in
// Redis, shows metrics at /metrics and the console at /idempotency/. With -ledger it is
// the bank.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/redis/go-redis/v9"
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"

	reprisehttp "github.com/reprise-go/reprise/adapters/nethttp"
	"github.com/reprise-go/reprise/console"
	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/protocol"
	repriseotel "github.com/reprise-go/reprise/otel"
	repriseredis "github.com/reprise-go/reprise/store/redis"
)

func main() {
	records := flag.String("redis", "", "the URL of the Redis with the records")
	bank := flag.String("bank", "", "the URL of the bank")
	audit := flag.String("audit", "", "the file of the console's audit log")
	ledger := flag.String("ledger", "", "be the bank, with the bookings in this file")
	fails := flag.Bool("fails", false, "be a bank that fails as payments tell it to")
	addr := flag.String("addr", "127.0.0.1:0", "where to listen")
	flag.Parse()
	var handler http.Handler
	var err error
	if *ledger != "" {
		handler, err = newBank(*ledger, *fails)
	} else {
		handler, err = newShop(context.Background(), *records, *bank, *audit)
	}
	if err == nil {
		err = serve(*addr, handler)
	}
	slog.Error("shop", slog.Any("error", err))
	os.Exit(1)
}

// serve serves until the process is killed.
func serve(addr string, handler http.Handler) error {
	listener, err := net.Listen("tcp", addr) //nolint:noctx // for the life of the process
	if err != nil {
		return err
	}
	fmt.Println("listening on", listener.Addr())
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second}
	return server.Serve(listener)
}

// newShop returns the shop.
func newShop(ctx context.Context, records, bank, audit string) (http.Handler, error) {
	options, err := redis.ParseURL(records)
	if err != nil {
		return nil, err
	}
	options.ContextTimeoutEnabled = true
	store, err := repriseredis.Open(ctx, redis.NewClient(options), repriseredis.Config{Prefix: "shop:"})
	if err != nil {
		return nil, err
	}
	exporter, err := otelprometheus.New()
	if err != nil {
		return nil, err
	}
	telemetry, err := repriseotel.New(repriseotel.Config{MeterProvider: metric.NewMeterProvider(metric.WithReader(exporter))})
	if err != nil {
		return nil, err
	}
	events := console.NewEvents()
	engine, err := reprise.New(telemetry.Store(store), reprise.Config{Observer: reprise.Observers(telemetry, events)})
	if err != nil {
		return nil, err
	}
	if _, err := telemetry.Watch("shop", engine); err != nil {
		return nil, err
	}
	guard, err := protocol.Over(engine, protocol.Config{
		Name: "payments", Required: true, Preset: reprise.AtMostOnce,
		Describe: func(_ context.Context, r *protocol.Request) string { return r.Method + " " + r.Path },
	})
	if err != nil {
		return nil, err
	}
	file, err := os.OpenFile(audit, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	pages, err := console.Handler([]console.Store{{Name: "shop", Store: store}}, operator, console.Config{
		Engines: []console.Engine{{Name: "shop", Engine: engine}}, Guards: []*protocol.Guard{guard}, Events: events,
		Log: slog.New(slog.NewJSONHandler(file, nil)),
	})
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("POST /payments", reprisehttp.Middleware(guard, customer)(pay(bank)))
	mux.Handle("GET /metrics", promhttp.HandlerFor(prometheus.DefaultGatherer, promhttp.HandlerOpts{}))
	mux.Handle("/idempotency/", http.StripPrefix("/idempotency", pages))
	return mux, nil
}

// operator names the operator that the company's proxy has authenticated.
func operator(r *http.Request) (string, console.Permission) {
	return r.Header.Get("X-Forwarded-User"), console.Look | console.Reveal | console.Resolve
}

// customer names the owner of a key.
func customer(r *http.Request) (string, error) {
	user, _, ok := r.BasicAuth()
	if !ok {
		return "", errors.New("no credentials")
	}
	return user, nil
}
