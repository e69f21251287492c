package otel_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/labstack/echo/v4"
	"go.opentelemetry.io/contrib/instrumentation/github.com/gin-gonic/gin/otelgin"
	"go.opentelemetry.io/contrib/instrumentation/github.com/labstack/echo/otelecho" //nolint:staticcheck // deprecated, and what Echo's users have
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	noop "go.opentelemetry.io/otel/metric/noop"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	repriseecho "github.com/reprise-go/reprise/adapters/echo"
	reprisegin "github.com/reprise-go/reprise/adapters/gin"
	reprisehttp "github.com/reprise-go/reprise/adapters/nethttp"
	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	repriseotel "github.com/reprise-go/reprise/otel"
)

// The instrumentation of each framework gets the outcome of a key.
func TestSpans(t *testing.T) {
	t.Parallel()
	gin.SetMode(gin.ReleaseMode)
	for name, handler := range map[string]func(*protocol.Guard, *sdktrace.TracerProvider) http.Handler{
		"nethttp": func(guard *protocol.Guard, tracer *sdktrace.TracerProvider) http.Handler {
			order := reprisehttp.Middleware(guard, reprisehttp.Unscoped)(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(http.StatusCreated)
			}))
			return otelhttp.NewHandler(order, "orders", otelhttp.WithTracerProvider(tracer))
		},
		"gin": func(guard *protocol.Guard, tracer *sdktrace.TracerProvider) http.Handler {
			router := gin.New()
			router.Use(otelgin.Middleware("orders", otelgin.WithTracerProvider(tracer)), reprisegin.Middleware(guard, reprisegin.Unscoped))
			router.POST("/orders", func(c *gin.Context) { c.Status(http.StatusCreated) })
			return router
		},
		"echo": func(guard *protocol.Guard, tracer *sdktrace.TracerProvider) http.Handler {
			router := echo.New()
			router.Use(otelecho.Middleware("orders", otelecho.WithTracerProvider(tracer)), repriseecho.Middleware(guard, repriseecho.Unscoped))
			router.POST("/orders", func(c echo.Context) error { return c.NoContent(http.StatusCreated) })
			return router
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			showSpans(t, handler)
		})
	}
}

// showSpans demands that the span of each request has the outcome of its key, and that a
// replay is linked to the trace of the first run. handler serves POST /orders behind the
// framework's instrumentation.
func showSpans(t *testing.T, handler func(*protocol.Guard, *sdktrace.TracerProvider) http.Handler) {
	t.Helper()
	exporter := tracetest.NewInMemoryExporter()
	tracer := sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter))
	telemetry, err := repriseotel.New(repriseotel.Config{MeterProvider: noop.NewMeterProvider()})
	labtest.Must(t, err)
	guard, err := protocol.New(memstore.New(), protocol.Config{Engine: reprise.Config{Observer: telemetry, Detach: repriseotel.Detach}, Label: "orders", Keep: protocol.Keeping{Annotate: repriseotel.Annotate}})
	labtest.Must(t, err)
	server := httptest.NewServer(handler(guard, tracer))
	t.Cleanup(func() {
		server.Close()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 10*time.Second)
		defer cancel()
		_ = guard.Close(ctx)
		_ = tracer.Shutdown(ctx)
	})
	post(t, server)
	post(t, server)

	awaitSpans(t, exporter, 2)
	spans := exporter.GetSpans()
	first, replay := spans[0], spans[1]
	if got := eventNames(first); !slices.Equal(got, []string{"reprise.claimed", "reprise.completed"}) {
		t.Errorf("the span of the first run has the events %q", got)
	}
	if got := eventNames(replay); !slices.Equal(got, []string{"reprise.replayed"}) {
		t.Errorf("the span of the replay has the events %q", got)
	}
	if len(first.Links) != 0 {
		t.Errorf("the first run is linked to %v", first.Links)
	}
	if len(replay.Links) != 1 || replay.Links[0].SpanContext.TraceID() != first.SpanContext.TraceID() ||
		replay.Links[0].SpanContext.SpanID() != first.SpanContext.SpanID() {
		t.Errorf("the replay is linked to %v, want %v", replay.Links, first.SpanContext)
	}
	for _, e := range append(first.Events, replay.Events...) {
		for _, a := range e.Attributes {
			if strings.Contains(a.Value.AsString(), "one-and-only") || (a.Key == "reprise.id" && len(a.Value.AsString()) != 12) {
				t.Errorf("%s has %s=%s", e.Name, a.Key, a.Value.AsString())
			}
		}
	}
}

func post(t *testing.T, server *httptest.Server) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+"/orders", http.NoBody)
	labtest.Must(t, err)
	r.Header.Set("Idempotency-Key", `"one-and-only"`)
	got, err := server.Client().Do(r)
	labtest.Must(t, err)
	defer got.Body.Close()
	_, _ = io.Copy(io.Discard, got.Body)
	if got.StatusCode != http.StatusCreated {
		t.Fatalf("status %d", got.StatusCode)
	}
}

func eventNames(span tracetest.SpanStub) (names []string) {
	for _, e := range span.Events {
		names = append(names, e.Name)
	}
	return names
}

// awaitSpans waits until n spans have ended.
func awaitSpans(t *testing.T, exporter *tracetest.InMemoryExporter, n int) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(time.Minute); len(exporter.GetSpans()) != n; <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("there are %d spans, want %d", len(exporter.GetSpans()), n)
		}
	}
}
