// Package promtest evaluates the alerts of otel/alerts.yaml in Prometheus' own engine.
package promtest

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/util/teststorage"

	"github.com/reprise-go/reprise/lab/internal/labtest"
)

// interval is the time between two scrapes.
const interval = 15 * time.Second

// Prometheus keeps scrapes on a virtual clock and evaluates rules at the last one.
type Prometheus struct {
	t       *testing.T
	storage *teststorage.TestStorage
	engine  *promql.Engine
	at      time.Time // of the next scrape
}

// Start returns a Prometheus without any samples.
func Start(t *testing.T) *Prometheus {
	t.Helper()
	p := &Prometheus{
		t: t, storage: teststorage.New(t), at: time.Unix(1_800_000_000, 0),
		engine: promql.NewEngine(promql.EngineOpts{MaxSamples: 1e6, Timeout: time.Minute}),
	}
	t.Cleanup(func() {
		_ = p.engine.Close()
		_ = p.storage.Close()
	})
	return p
}

// Rules returns the alerts of a file, as Prometheus reads them.
func Rules(t *testing.T, file string) []rulefmt.Rule {
	t.Helper()
	groups, errs := rulefmt.ParseFile(file, false, model.UTF8Validation)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	var all []rulefmt.Rule
	for _, group := range groups.Groups {
		all = append(all, group.Rules...)
	}
	return all
}

// Pass lets time pass, in which each scrape finds these metrics.
func (p *Prometheus) Pass(d time.Duration, families map[string]*dto.MetricFamily) {
	p.t.Helper()
	for end := p.at.Add(d); p.at.Before(end); p.at = p.at.Add(interval) {
		p.append(families)
	}
}

// Skip lets time pass without a scrape.
func (p *Prometheus) Skip(d time.Duration) { p.at = p.at.Add(d) }

// patient is a long For. Rules with a shorter one are taken to fire at once, so that a
// test need not wait.
const patient = 30 * time.Minute

// Firing returns the names of the rules whose expression holds, and held before if they
// are patient.
func (p *Prometheus) Firing(rules []rulefmt.Rule) (names []string) {
	p.t.Helper()
	now := p.at.Add(-interval)
	for _, rule := range rules {
		since := now
		if last := time.Duration(rule.For); last >= patient {
			since = now.Add(-last)
		}
		if p.holds(rule, now) && p.holds(rule, since) {
			names = append(names, rule.Alert)
		}
	}
	slices.Sort(names)
	return names
}

// holds reports whether the expression of a rule held at a time.
func (p *Prometheus) holds(rule rulefmt.Rule, at time.Time) bool {
	p.t.Helper()
	query, err := p.engine.NewInstantQuery(p.t.Context(), p.storage, nil, rule.Expr, at)
	if err != nil {
		p.t.Fatalf("%s: %v", rule.Alert, err)
	}
	defer query.Close()
	vector, err := query.Exec(p.t.Context()).Vector()
	if err != nil {
		p.t.Fatalf("%s: %v", rule.Alert, err)
	}
	return len(vector) > 0
}

// append keeps a scrape as Prometheus does.
func (p *Prometheus) append(families map[string]*dto.MetricFamily) {
	p.t.Helper()
	appender := p.storage.Appender(p.t.Context())
	add := func(name string, m *dto.Metric, value float64, more ...string) {
		list := []string{model.MetricNameLabel, name}
		for _, l := range m.GetLabel() {
			list = append(list, l.GetName(), l.GetValue())
		}
		if _, err := appender.Append(0, labels.FromStrings(append(list, more...)...), p.at.UnixMilli(), value); err != nil {
			p.t.Fatal(err)
		}
	}
	for name, family := range families {
		for _, m := range family.GetMetric() {
			switch family.GetType() {
			case dto.MetricType_HISTOGRAM:
				h := m.GetHistogram()
				add(name+"_count", m, float64(h.GetSampleCount()))
				add(name+"_sum", m, h.GetSampleSum())
				for _, b := range h.GetBucket() {
					if !math.IsInf(b.GetUpperBound(), 1) {
						add(name+"_bucket", m, float64(b.GetCumulativeCount()), "le", fmt.Sprint(b.GetUpperBound()))
					}
				}
				add(name+"_bucket", m, float64(h.GetSampleCount()), "le", "+Inf")
			default:
				add(name, m, m.GetCounter().GetValue()+m.GetGauge().GetValue())
			}
		}
	}
	labtest.Must(p.t, appender.Commit())
}
