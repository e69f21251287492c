package otel_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	noop "go.opentelemetry.io/otel/metric/noop"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	reprisehttp "github.com/reprise-go/reprise/adapters/nethttp"
	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	repriseotel "github.com/reprise-go/reprise/otel"
)

// The span of each request has the outcome of its key, and a replay is linked to the
// trace of the first run.
func TestSpans(t *testing.T) {
	t.Parallel()
	exporter := tracetest.NewInMemoryExporter()
	tracer := sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter))
	telemetry, err := repriseotel.New(repriseotel.Config{MeterProvider: noop.NewMeterProvider()})
	labtest.Must(t, err)
	guard, err := protocol.New(memstore.New(), protocol.Config{Engine: reprise.Config{Observer: telemetry, Detach: repriseotel.Detach}, Label: "orders", Keep: protocol.Keeping{Annotate: repriseotel.Annotate}})
	labtest.Must(t, err)
	t.Cleanup(func() { labtest.Must(t, guard.Close(context.WithoutCancel(t.Context()))) })
	order := reprisehttp.Middleware(guard, reprisehttp.Unscoped)(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusCreated)
	}))
	handler := otelhttp.NewHandler(order, "orders", otelhttp.WithTracerProvider(tracer))
	for range 2 {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/orders", http.NoBody)
		r.Header.Set("Idempotency-Key", `"one-and-only"`)
		w := httptest.NewRecorder()
		if handler.ServeHTTP(w, r); w.Code != http.StatusCreated {
			t.Fatalf("status %d", w.Code)
		}
	}
	spans := exporter.GetSpans()
	if len(spans) != 2 {
		t.Fatalf("there are %d spans, want 2", len(spans))
	}
	first, replay := spans[0], spans[1]
	for _, c := range []struct {
		span tracetest.SpanStub
		want []string
	}{{first, []string{"reprise.claimed", "reprise.completed"}}, {replay, []string{"reprise.replayed"}}} {
		var names []string
		for _, e := range c.span.Events {
			names = append(names, e.Name)
			for _, a := range e.Attributes {
				if strings.Contains(a.Value.AsString(), "one-and-only") || (a.Key == "reprise.id" && len(a.Value.AsString()) != 12) {
					t.Errorf("%s has %s=%s", e.Name, a.Key, a.Value.AsString())
				}
			}
		}
		if !slices.Equal(names, c.want) {
			t.Errorf("a span has the events %q, want %q", names, c.want)
		}
	}
	if len(first.Links) != 0 || len(replay.Links) != 1 || !replay.Links[0].SpanContext.WithRemote(false).Equal(first.SpanContext.WithRemote(false)) {
		t.Errorf("the first run is linked to %v, and the replay to %v, want none and %v", first.Links, replay.Links, first.SpanContext)
	}
}
