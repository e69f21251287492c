package command

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	exporter "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/store"
	repriseotel "github.com/reprise-go/reprise/otel"
)

// meters are the metrics of a process: those of package repriseotel, and of Go. The zero
// value has none.
type meters struct {
	registry  *prometheus.Registry
	telemetry *repriseotel.Telemetry
}

// newMeters returns none unless they are wanted.
func newMeters(wanted bool) (meters, error) {
	if !wanted {
		return meters{}, nil
	}
	m := meters{registry: prometheus.NewRegistry()}
	m.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	reader, err := exporter.New(exporter.WithRegisterer(m.registry), exporter.WithoutScopeInfo(), exporter.WithoutTargetInfo())
	if err != nil {
		return meters{}, err
	}
	m.telemetry, err = repriseotel.New(repriseotel.Config{MeterProvider: metric.NewMeterProvider(metric.WithReader(reader))})
	return m, err
}

func (m meters) store(st store.Store) store.Store {
	if m.telemetry == nil {
		return st
	}
	return m.telemetry.Store(st)
}

func (m meters) observer() reprise.Observer {
	if m.telemetry == nil {
		return nil
	}
	return m.telemetry
}

func (m meters) watch(engine *reprise.Engine) (stop func(), err error) {
	if m.telemetry == nil {
		return func() {}, nil
	}
	unwatch, err := m.telemetry.Watch("proxy", engine)
	return func() { _ = unwatch() }, err
}

func (m meters) handler() http.Handler {
	if m.registry == nil {
		return http.NotFoundHandler()
	}
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}
