// Package shop has the common parts of the programs in this example: an orders API with
// metrics at /metrics and spans on standard output.
package shop

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/exporters/stdout/stdouttrace"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/trace"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/protocol"
	repriseotel "github.com/reprise-go/reprise/otel"
)

// Main runs the program: it serves POST /orders by the handler that handler makes for a
// guard.
func Main(handler func(*protocol.Guard) http.Handler) {
	if err := start(handler); err != nil {
		fmt.Fprintln(os.Stderr, "telemetry:", err)
		os.Exit(1)
	}
}

func start(handler func(*protocol.Guard) http.Handler) error {
	addr := flag.String("addr", "127.0.0.1:8080", "`address` to listen on")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()

	// Where metrics and spans go. A service sends its spans to a collector.
	metrics, err := prometheus.New()
	if err != nil {
		return err
	}
	otel.SetMeterProvider(metric.NewMeterProvider(metric.WithReader(metrics)))
	spans, err := stdouttrace.New()
	if err != nil {
		return err
	}
	tracer := trace.NewTracerProvider(trace.WithSyncer(spans))
	otel.SetTracerProvider(tracer)

	telemetry, err := repriseotel.New(repriseotel.Config{})
	if err != nil {
		return err
	}
	guard, err := protocol.New(telemetry.Store(memstore.New()), protocol.Config{
		Name: "orders", Required: true, Keep: protocol.Keeping{Annotate: repriseotel.Annotate},
		Engine: reprise.Config{MaxRun: time.Minute, Observer: telemetry, Detach: repriseotel.Detach},
	})
	if err != nil {
		return err
	}
	unwatch, err := telemetry.Watch("orders", guard.Engine())
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("POST /orders", handler(guard))
	mux.Handle("GET /metrics", promhttp.Handler())
	err = serve(ctx, *addr, mux)

	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	return errors.Join(err, guard.Close(closing), unwatch(), tracer.Shutdown(closing))
}

// serve serves until ctx ends.
func serve(ctx context.Context, addr string, handler http.Handler) error {
	ln, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "listening on %s\n", ln.Addr())
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second}
	served := make(chan error, 1)
	go func() { served <- server.Serve(ln) }()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	return server.Shutdown(closing)
}
