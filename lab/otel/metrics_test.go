package otel_test

import (
	"maps"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	repriseotel "github.com/reprise-go/reprise/otel"
)

// Prometheus scrapes the engine's counts.
func TestScrapedCountersAreTheEnginesOwn(t *testing.T) {
	t.Parallel()
	s := busy(t)
	labtest.Eventually(t, "the background to end", func() bool { return s.engine.Stats().Background == 0 })
	families := s.scrape()
	stats := s.engine.Stats().Labels["orders"]

	for _, outcome := range reprise.Outcomes() {
		got, ok := value(families["reprise_requests_total"], "reprise_label", "orders", "reprise_outcome", outcome.String())
		if want := stats.Outcomes[outcome]; !ok || got != float64(want) {
			t.Errorf("%v: %v, %v; the engine counted %d", outcome, got, ok, want)
		}
	}
	for _, end := range reprise.AttemptEnds() {
		got, ok := value(families["reprise_attempts_total"], "reprise_label", "orders", "reprise_end", end.String())
		if want := stats.Ends[end]; !ok || got != float64(want) {
			t.Errorf("%v: %v, %v; the engine counted %d", end, got, ok, want)
		}
	}
	if stats.Outcomes[reprise.Replayed] != 1 || stats.Outcomes[reprise.InProgress] != 1 || stats.Outcomes[reprise.KeyMissing] != 1 {
		t.Errorf("the traffic was not what it should be: %+v", stats)
	}
	for _, name := range []string{
		"reprise_claim_duration_seconds", "reprise_handler_duration_seconds", "reprise_complete_duration_seconds", "reprise_store_duration_seconds",
	} {
		count := uint64(0)
		for _, m := range families[name].GetMetric() {
			count += m.GetHistogram().GetSampleCount()
			bounds := m.GetHistogram().GetBucket()
			if last := bounds[len(bounds)-2].GetUpperBound(); last <= time.Hour.Seconds() { // the default of MaxRun; the one behind it is infinite
				t.Errorf("a quantile of %s ends at %v s", name, last)
			}
		}
		if count == 0 {
			t.Errorf("%s has no observation", name)
		}
	}
	for _, name := range []string{"reprise_running", "reprise_waiting", "reprise_background_tasks", "reprise_background_bytes", "reprise_events_dropped_total"} {
		if _, ok := value(families[name], "reprise_engine", "main"); !ok {
			t.Errorf("%s is missing", name)
		}
	}
	if errors, ok := value(families["reprise_events_total"], "reprise_event", "store-error"); !ok || errors == 0 {
		t.Errorf("%v failures of the store, %v", errors, ok)
	}
	for _, name := range []string{"panic", "blob-error", "description-withheld", "error-reported", "body-consumed", "body-omitted"} {
		if n, ok := value(families["reprise_events_total"], "reprise_label", "orders", "reprise_event", name); !ok || n != 0 {
			t.Errorf("%s begins at %v, %v, want zero", name, n, ok)
		}
	}
	for _, name := range []string{"unavailable", "corrupt"} {
		if _, ok := value(families["reprise_store_duration_seconds"], "error_type", name); !ok {
			t.Errorf("no call of the store failed as %s", name)
		}
	}
	for name, family := range families {
		for _, m := range family.GetMetric() {
			for _, l := range m.GetLabel() {
				if id.MatchString(l.GetValue()) {
					t.Errorf("%s has an ID in %s: %s", name, l.GetName(), l.GetValue())
				}
			}
		}
	}
}

// id is a whole or a short ID.
var id = regexp.MustCompile(`^[0-9a-f]{12}([0-9a-f]{52})?$`)

// units end the names of Prometheus.
var units = regexp.MustCompile(`_(total|seconds|ratio)$`)

// The page of metrics has every instrument of a service and of a client, with its kind,
// and no other.
func TestThePageHasEveryMetric(t *testing.T) {
	t.Parallel()
	s := busy(t)
	have := map[string]string{} // kinds
	for name, family := range s.scrape() {
		if strings.HasPrefix(name, "reprise_") {
			have[units.ReplaceAllString(name, "")] = strings.ToLower(family.GetType().String())
		}
	}
	reader := metric.NewManualReader()
	url, _ := flaky(t, false)
	labtest.Must(t, call(t, url, repriseotel.ClientConfig{MeterProvider: metric.NewMeterProvider(metric.WithReader(reader))}, sdktrace.NewTracerProvider()))
	var all metricdata.ResourceMetrics
	labtest.Must(t, reader.Collect(t.Context(), &all))
	for _, m := range all.ScopeMetrics[0].Metrics {
		kind := "counter"
		if _, ok := m.Data.(metricdata.Histogram[float64]); ok {
			kind = "histogram"
		}
		have[strings.ReplaceAll(m.Name, ".", "_")] = kind
	}
	page, err := os.ReadFile("../../docs/reference/metrics.md")
	labtest.Must(t, err)
	listed := map[string]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `(reprise\\.[a-z.]+)` \\| (\\w+) \\|").FindAllStringSubmatch(string(page), -1) {
		listed[strings.ReplaceAll(row[1], ".", "_")] = row[2]
	}
	if !maps.Equal(have, listed) {
		t.Errorf("there are\n%v\nand docs/reference/metrics.md has\n%v", have, listed)
	}
}

// value returns the number of the metric that has these labels.
func value(family *dto.MetricFamily, labels ...string) (float64, bool) {
	for _, m := range family.GetMetric() {
		if matches(m, labels) {
			return m.GetCounter().GetValue() + m.GetGauge().GetValue(), true
		}
	}
	return 0, false
}

func matches(m *dto.Metric, labels []string) bool {
	for i := 0; i+1 < len(labels); i += 2 {
		found := false
		for _, l := range m.GetLabel() {
			found = found || l.GetName() == labels[i] && l.GetValue() == labels[i+1]
		}
		if !found {
			return false
		}
	}
	return true
}
