// Telemetry is an orders API whose metrics Prometheus scrapes and whose requests are
// traced, on net/http, Gin or Echo, each with its own instrumentation outside the
// middleware of Reprise:
//
//	go run ./examples/telemetry -framework gin
//	curl -X POST localhost:8080/orders -H 'Idempotency-Key: "7c1f"'   # twice
//	curl -s localhost:8080/metrics | grep reprise_
//
// Spans are printed to standard output: the second one is linked to the first.
package main

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

	"github.com/gin-gonic/gin"
	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/contrib/instrumentation/github.com/gin-gonic/gin/otelgin"
	"go.opentelemetry.io/contrib/instrumentation/github.com/labstack/echo/otelecho"
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/exporters/stdout/stdouttrace"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/trace"

	repriseecho "github.com/reprise-go/reprise/adapters/echo"
	reprisegin "github.com/reprise-go/reprise/adapters/gin"
	reprisehttp "github.com/reprise-go/reprise/adapters/nethttp"
	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/protocol"
	repriseotel "github.com/reprise-go/reprise/otel"
)

func main() {
	if err := start(); err != nil {
		fmt.Fprintln(os.Stderr, "telemetry:", err)
		os.Exit(1)
	}
}

func start() error {
	addr := flag.String("addr", "127.0.0.1:8080", "`address` to listen on")
	framework := flag.String("framework", "nethttp", "nethttp, gin or echo")
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
	engine, err := reprise.New(telemetry.Store(memstore.New()), reprise.Config{Observer: telemetry, Detach: repriseotel.Detach})
	if err != nil {
		return err
	}
	unwatch, err := telemetry.Watch("orders", engine)
	if err != nil {
		return err
	}
	guard, err := protocol.New(engine, protocol.Config{Name: "orders", Required: true, Annotate: repriseotel.Annotate})
	if err != nil {
		return err
	}
	orders, err := handler(*framework, guard)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("POST /orders", orders)
	mux.Handle("GET /metrics", promhttp.Handler())
	err = serve(ctx, *addr, mux)

	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	return errors.Join(err, engine.Close(closing), unwatch(), tracer.Shutdown(closing))
}

// handler returns the API on a framework: the instrumentation, then Reprise, then the
// order.
func handler(framework string, guard *protocol.Guard) (http.Handler, error) {
	switch framework {
	case "nethttp":
		order := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) })
		return otelhttp.NewHandler(reprisehttp.Middleware(guard, reprisehttp.Unscoped)(order), "POST /orders"), nil
	case "gin":
		gin.SetMode(gin.ReleaseMode)
		router := gin.New()
		router.Use(otelgin.Middleware("orders"), reprisegin.Middleware(guard, reprisegin.Unscoped))
		router.POST("/orders", func(c *gin.Context) { c.Status(http.StatusCreated) })
		return router, nil
	case "echo":
		router := echo.New()
		router.Use(otelecho.Middleware("orders"), repriseecho.Middleware(guard, repriseecho.Unscoped))
		router.POST("/orders", func(c echo.Context) error { return c.NoContent(http.StatusCreated) })
		return router, nil
	default:
		return nil, fmt.Errorf("-framework is %q, want nethttp, gin or echo", framework)
	}
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
