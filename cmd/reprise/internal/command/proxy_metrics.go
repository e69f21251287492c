package command

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	exporter "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"

	repriseotel "github.com/reprise-go/reprise/otel"
)

// meters are the metrics of a process: those of package repriseotel, of all requests, and
// of Go.
type meters struct {
	registry  *prometheus.Registry
	telemetry *repriseotel.Telemetry
}

func newMeters() (meters, error) {
	m := meters{registry: prometheus.NewRegistry()}
	m.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	reader, err := exporter.New(exporter.WithRegisterer(m.registry), exporter.WithoutScopeInfo(), exporter.WithoutTargetInfo())
	if err != nil {
		return meters{}, err
	}
	m.telemetry, err = repriseotel.New(repriseotel.Config{MeterProvider: metric.NewMeterProvider(metric.WithReader(reader))})
	return m, err
}

// around counts the requests of a handler, with a key and without.
func (m meters) around(next http.Handler) http.Handler {
	running := prometheus.NewGauge(prometheus.GaugeOpts{Name: "reprise_proxy_requests", Help: "Requests that run, with a key and without."})
	took := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "reprise_proxy_request_seconds", Help: "Requests that got a response, with a key and without, and how long they took.",
		Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300, 900, 3600, 7200}, // beyond maxRun
	}, []string{"code", "method"})
	m.registry.MustRegister(running, took)
	return promhttp.InstrumentHandlerInFlight(running, promhttp.InstrumentHandlerDuration(took, next))
}

func (m meters) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}
