package main

import (
	"io"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/exporters/stdout/stdouttrace"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/trace"

	repriseotel "github.com/reprise-go/reprise/otel"
)

// telemetry is where metrics and spans go.
type telemetry struct {
	*repriseotel.Telemetry

	metrics *metric.MeterProvider
	spans   *trace.TracerProvider
	page    http.Handler // Prometheus scrapes it
}

// newTelemetry prints spans to a writer; a service sends them to a collector.
func newTelemetry(spans io.Writer) (*telemetry, error) {
	registry := prometheus.NewRegistry()
	reader, err := otelprometheus.New(otelprometheus.WithRegisterer(registry))
	if err != nil {
		return nil, err
	}
	printer, err := stdouttrace.New(stdouttrace.WithWriter(spans))
	if err != nil {
		return nil, err
	}
	t := &telemetry{
		metrics: metric.NewMeterProvider(metric.WithReader(reader)),
		spans:   trace.NewTracerProvider(trace.WithSyncer(printer)),
		page:    promhttp.HandlerFor(registry, promhttp.HandlerOpts{}),
	}
	t.Telemetry, err = repriseotel.New(repriseotel.Config{MeterProvider: t.metrics})
	return t, err
}

// traced makes a span for each request. It is outside of everything else.
func (t *telemetry) traced(name string, next http.Handler) http.Handler {
	return otelhttp.NewHandler(next, name, otelhttp.WithMeterProvider(t.metrics), otelhttp.WithTracerProvider(t.spans))
}
