package otel_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	noop "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	repriseclient "github.com/reprise-go/reprise/client"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	repriseotel "github.com/reprise-go/reprise/otel"
)

// flaky breaks the first connection, is busy once, and then answers with a replay; or it
// breaks them all.
func flaky(t *testing.T, always bool) (url string, traces func() []string) {
	t.Helper()
	var n atomic.Int32
	seen := make(chan string, 100)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen <- r.Header.Get("Traceparent")
		switch {
		case always || n.Add(1) == 1:
			panic(http.ErrAbortHandler)
		case n.Load() == 2:
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusConflict)
			_, _ = io.WriteString(w, `{"code":"in-progress"}`)
		default:
			w.Header().Set("Idempotent-Replayed", "true")
			w.WriteHeader(http.StatusCreated)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL, func() (list []string) {
		for len(seen) > 0 {
			list = append(list, <-seen)
		}
		return list
	}
}

// call makes a call with the telemetry over otelhttp, in the order of
// docs/guides/client.md.
func call(t *testing.T, url string, c repriseotel.ClientConfig, tracer *sdktrace.TracerProvider) error {
	t.Helper()
	observer, err := repriseotel.NewClient(c)
	labtest.Must(t, err)
	connections := &http.Transport{}
	t.Cleanup(connections.CloseIdleConnections)
	below := otelhttp.NewTransport(connections, otelhttp.WithTracerProvider(tracer), otelhttp.WithMeterProvider(noop.NewMeterProvider()),
		otelhttp.WithPropagators(propagation.TraceContext{}))
	transport, err := repriseclient.NewTransport(below, repriseclient.Config{Observer: observer, Delay: time.Millisecond, MaxAttempts: 3})
	labtest.Must(t, err)
	ctx := repriseclient.WithKey(t.Context(), "one-and-only")
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader("hello"))
	labtest.Must(t, err)
	resp, err := (&http.Client{Transport: transport}).Do(req)
	if err == nil {
		_ = resp.Body.Close()
	}
	return err
}

// A call is a span with an event for each attempt, and the parent of the spans of
// otelhttp, whose trace the service gets.
func TestACallIsTheParentOfItsAttempts(t *testing.T) {
	t.Parallel()
	exporter := tracetest.NewInMemoryExporter()
	tracer := sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter))
	reader := metric.NewManualReader()
	url, traces := flaky(t, false)
	c := repriseotel.ClientConfig{Label: "shop", MeterProvider: metric.NewMeterProvider(metric.WithReader(reader)), TracerProvider: tracer}
	labtest.Must(t, call(t, url, c, tracer))
	spans := exporter.GetSpans()
	attempts, top := spans[:len(spans)-1], spans[len(spans)-1] // that of the call ends last
	if len(attempts) != 3 || len(top.Events) != 3 || top.Name != "reprise.call" {
		t.Fatalf("%d spans of attempts and %d events of %s, want 3", len(attempts), len(top.Events), top.Name)
	}
	received := traces()
	for i, span := range attempts {
		if span.Parent.SpanID() != top.SpanContext.SpanID() {
			t.Errorf("attempt %d is no child of the call", i+1)
		}
		if !strings.Contains(received[i], span.SpanContext.SpanID().String()) {
			t.Errorf("the service got the trace %s, want the span %s", received[i], span.SpanContext.SpanID())
		}
	}
	for i, want := range []string{"error", "in-progress", "2xx"} {
		if got := valueOf(top.Events[i].Attributes, "reprise.result"); got != want {
			t.Errorf("attempt %d has the result %s, want %s", i+1, got, want)
		}
	}
	for key, want := range map[attribute.Key]string{
		"reprise.outcome": "replayed", "reprise.attempts": "3", "reprise.label": "shop", "http.request.method": "POST", "http.response.status_code": "201",
		"server.address": "127.0.0.1", "server.port": url[strings.LastIndex(url, ":")+1:], "error.type": "",
	} {
		if got := valueOf(top.Attributes, key); got != want {
			t.Errorf("the call has %s=%s, want %s", key, got, want)
		}
	}
	for _, a := range top.Attributes {
		if strings.Contains(a.Value.String(), "one-and-only") {
			t.Errorf("the key is in %s", a.Key)
		}
	}

	sums := sumsOf(t, reader)
	for name, want := range map[string]int64{
		"reprise.client.calls reprise.label=shop,reprise.outcome=replayed":                                        1,
		"reprise.client.calls reprise.label=shop,reprise.outcome=unknown":                                         0,
		"reprise.client.attempts error.type=error,reprise.label=shop,reprise.result=error,reprise.retry=true":     1,
		"reprise.client.attempts error.type=409,reprise.label=shop,reprise.result=in-progress,reprise.retry=true": 1,
		"reprise.client.attempts reprise.label=shop,reprise.result=2xx,reprise.retry=false":                       1,
		"reprise.client.call.duration reprise.label=shop,reprise.outcome=replayed":                                1,
	} {
		if got, ok := sums[name]; !ok || got != want {
			t.Errorf("%s is %d (there: %v), want %d; there are %v", name, got, ok, want, sums)
		}
	}
}

func TestCallWithoutAResponseIsAnError(t *testing.T) {
	t.Parallel()
	exporter := tracetest.NewInMemoryExporter()
	tracer := sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter))
	url, _ := flaky(t, true)
	err := call(t, url, repriseotel.ClientConfig{MeterProvider: noop.NewMeterProvider(), TracerProvider: tracer}, tracer)
	if _, ok := errors.AsType[*repriseclient.UnknownOutcomeError](err); !ok {
		t.Errorf("got %v", err)
	}
	spans := exporter.GetSpans() // that of the call ends last
	if span := spans[len(spans)-1]; span.Name != "reprise.call" || span.Status.Code != codes.Error || span.Status.Description != "unknown" || valueOf(span.Attributes, "error.type") != "error" {
		t.Errorf("the span %s ends with %v, %v", span.Name, span.Status, span.Attributes)
	}
}

func valueOf(list []attribute.KeyValue, key attribute.Key) string {
	for _, a := range list {
		if a.Key == key {
			return a.Value.String()
		}
	}
	return ""
}

// sumsOf returns the counters, and how many values the histograms have.
func sumsOf(t *testing.T, reader *metric.ManualReader) map[string]int64 {
	t.Helper()
	var all metricdata.ResourceMetrics
	labtest.Must(t, reader.Collect(t.Context(), &all))
	sums := make(map[string]int64)
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			switch data := m.Data.(type) {
			case metricdata.Sum[int64]:
				for _, p := range data.DataPoints {
					sums[m.Name+" "+p.Attributes.Encoded(attribute.DefaultEncoder())] = p.Value
				}
			case metricdata.Histogram[float64]:
				for _, p := range data.DataPoints {
					sums[m.Name+" "+p.Attributes.Encoded(attribute.DefaultEncoder())] = int64(p.Count)
				}
			}
		}
	}
	return sums
}
