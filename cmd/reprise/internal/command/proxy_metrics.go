package command

import (
	"maps"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	exporter "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"

	repriseotel "github.com/reprise-go/reprise/otel"
	"github.com/reprise-go/reprise/proxy"

	"github.com/reprise-go/reprise/cmd/reprise/internal/front"
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

// watch adds what a handler and its server hold, and how often each of their bounds was
// met.
func (m meters) watch(h *proxy.Handler, s *front.Server) {
	gauge := func(name, help string, value func() float64) {
		m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value))
	}
	gauge("reprise_proxy_connections", "Connections of clients.", func() float64 { open, _ := s.Connections(); return float64(open) })
	gauge("reprise_proxy_held_body_bytes", "Bytes that have come of the bodies of requests with a key.", func() float64 { return float64(h.Stats().HeldBodies) })
	met := func() map[string]int64 {
		_, bounds := s.Connections()
		maps.Copy(bounds, h.Stats().Limited)
		return bounds
	}
	for bound := range met() {
		m.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "reprise_proxy_bounds_met_total", Help: "How often a bound was met.", ConstLabels: prometheus.Labels{"bound": bound},
		}, func() float64 { return float64(met()[bound]) }))
	}
}

func (m meters) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}
