package otel_test

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/operate"
	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/lab/otel/promtest"
)

// rules returns the alerts, as Prometheus reads them.
func rules(t *testing.T) []rulefmt.Rule {
	t.Helper()
	all := promtest.Rules(t, "../../otel/alerts.yaml")
	if len(all) < 8 {
		t.Fatalf("only %d alerts", len(all))
	}
	return all
}

// monitor is a Prometheus with the alerts.
type monitor struct {
	*testing.T

	prometheus *promtest.Prometheus
}

func watch(t *testing.T) *monitor {
	t.Helper()
	return &monitor{t, promtest.Start(t)}
}

// pass scrapes the present metrics of a service for two and a half minutes.
func (m *monitor) pass(s *service) {
	m.Helper()
	m.prometheus.Pass(150*time.Second, s.scrape())
}

// fires returns the alerts that fire.
func (m *monitor) fires() []string {
	m.Helper()
	return m.prometheus.Firing(rules(m.T))
}

// Each alert fires when its condition occurs in a real service, and none in the traffic
// of a good day.
func TestAlertsFireForTheirConditions(t *testing.T) {
	t.Parallel()
	s, m := serve(t), watch(t)
	s.counted()
	m.pass(s)
	s.traffic()
	m.pass(s)
	if got := m.fires(); len(got) > 0 {
		t.Errorf("on a good day: %q", got)
	}
	s.trouble()
	s.stuck()
	m.pass(s)
	got := m.fires()
	for _, name := range []string{"RepriseOutcomeUnknown", "RepriseUnrecorded", "RepriseLeaseLost", "RepriseStoreDown", "RepriseRecordUnreadable", "RepriseKeyReuse"} {
		if !slices.Contains(got, name) {
			t.Errorf("%s does not fire; these do: %q", name, got)
		}
	}
}

// A handler does not know the outcome, and its transaction is rolled back without a
// record that says so: a retry runs it again. An end without such a reason is no alert.
func TestAlertFiresForAnUnknownOutcomeWithoutARecord(t *testing.T) {
	t.Parallel()
	s, m := serve(t), watch(t)
	s.counted()
	m.pass(s)
	s.engine.Report(t.Context(), reprise.Event{End: reprise.EndNotApplied, Label: "orders"})
	m.pass(s)
	if got := m.fires(); len(got) > 0 {
		t.Errorf("after a rollback: %q", got)
	}
	s.engine.Report(t.Context(), reprise.Event{End: reprise.EndNotApplied, Label: "orders", Reason: "the bank timed out"})
	m.pass(s)
	if got := m.fires(); !slices.Equal(got, []string{"RepriseUnrecorded"}) {
		t.Errorf("these alerts fire: %q", got)
	}
}

// A process dies in an operation, and its client never comes back: no request of the next
// process finds the record. The alert ends when an operator resolves it.
func TestAlertFiresForAClientThatNeverComesBack(t *testing.T) {
	t.Parallel()
	before, m := serve(t), watch(t)
	before.die()
	s := serveOver(t, before.store)
	s.counted()
	m.pass(s)
	if got := m.fires(); !slices.Equal(got, []string{"RepriseStuck"}) {
		t.Errorf("these alerts fire: %q", got)
	}
	for _, c := range []struct {
		label, state string
		want         float64
	}{{"orders", "lapsed", 1}, {"orders", "unknown", 0}, {"patient", "lapsed", 0}} {
		got, ok := value(s.scrape()["reprise_stuck"], "reprise_engine", "main", "reprise_label", c.label, "reprise_state", c.state)
		if !ok || got != c.want {
			t.Errorf("%s %s: %v (there: %t), want %v", c.label, c.state, got, ok, c.want)
		}
	}

	id := store.DeriveID(operate.SharedScope, "", "stuck")
	r, err := before.store.Inspect(t.Context(), id)
	labtest.Must(t, err)
	labtest.Must(t, before.store.Resolve(t.Context(), id, store.Resolution{State: r.State, Fence: r.Fence, Forget: true}))
	s.close()
	m.prometheus.Skip(time.Hour)
	last := serveOver(t, before.store) // its first count is at once
	last.counted()
	m.pass(last)
	if got := m.fires(); len(got) > 0 {
		t.Errorf("after the resolution: %q", got)
	}
}

// RepriseStuck is silent where no process may count.
func TestAlertFiresWhereNothingIsCounted(t *testing.T) {
	t.Parallel()
	st := memstore.New()
	s, m := serveThrough(t, st, unlisted{st}), watch(t)
	labtest.Eventually(t, "the first count to fail", func() bool {
		failed, _ := value(s.scrape()["reprise_stuck_uncounted"], "reprise_engine", "main")
		return failed == 1
	})
	families := s.scrape()
	m.prometheus.Pass(time.Hour, families)
	if got := m.fires(); len(got) > 0 {
		t.Errorf("within the hour in which a count may be late: %q", got)
	}
	m.prometheus.Pass(5*time.Minute, families)
	if got := m.fires(); !slices.Equal(got, []string{"RepriseStuckUncounted"}) {
		t.Errorf("these alerts fire: %q", got)
	}
}

// What the check of a server finds, and what the store uses of its resources, fire before
// a claim fails. A check that fails is no finding.
func TestAlertsFireForTheServerOfAStore(t *testing.T) {
	t.Parallel()
	few := memstore.Bounds{Records: 2}
	for name, c := range map[string]struct {
		bounds memstore.Bounds
		server checked
		pass   time.Duration
		want   string
	}{
		"a warning":       {server: checked{findings: []store.Finding{{Code: "pool-size", Severity: store.Warning}}}, pass: time.Hour},
		"nearly full":     {server: checked{findings: []store.Finding{{Code: "memory", Severity: store.Warning}}}, pass: time.Minute, want: "RepriseStoreNearlyFull"},
		"a few records":   {bounds: few, pass: time.Minute, want: "RepriseStoreNearlyFull"},
		"unsafe":          {server: checked{findings: []store.Finding{{Code: "eviction-policy", Severity: store.Unsafe}}}, pass: time.Minute, want: "RepriseStoreUnsafe"},
		"not checked":     {server: checked{unchecked: store.ErrUnavailable}, pass: 65 * time.Minute, want: "RepriseStoreUnchecked"},
		"a pool in use":   {server: checked{used: 10}, pass: time.Minute, want: "RepriseSaturated"},
		"a pool half so":  {server: checked{used: 5}, pass: time.Hour},
		"not checked yet": {server: checked{unchecked: store.ErrUnavailable}, pass: 50 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			st, err := memstore.NewBounded(c.bounds)
			labtest.Must(t, err)
			c.server.Store = st
			s, m := serveThrough(t, st, &c.server), watch(t)
			s.want("an order", s.send("one", "", ""), 201)
			s.want("another order", s.send("two", "", ""), 201)
			labtest.Eventually(t, "the first check", func() bool {
				failed, _ := value(s.scrape()["reprise_store_unchecked"], "reprise_engine", "main")
				return failed == 1 || c.server.unchecked == nil && (len(c.server.findings) == 0 || s.scrape()["reprise_store_findings"] != nil)
			})
			m.prometheus.Pass(c.pass, s.scrape())
			if got := strings.Join(m.fires(), " "); got != c.want {
				t.Errorf("these alerts fire: %q, want %q", got, c.want)
			}
		})
	}
}

// A service is silent whose store is counted by another, and so is one that knows no
// policy yet: neither has the gauge of the count.
func TestAlertIsSilentWhereAnotherServiceCounts(t *testing.T) {
	t.Parallel()
	st := memstore.New()
	counts := serveOver(t, st)
	counts.counted()
	s, m := serveOver(t, st), watch(t)
	families := s.scrape()
	if failed, there := value(families["reprise_stuck_uncounted"], "reprise_engine", "main"); families["reprise_stuck"] != nil || !there || failed != 0 {
		t.Errorf("two services count: %v", families["reprise_stuck"])
	}
	m.prometheus.Pass(2*time.Hour, families)
	if got := m.fires(); len(got) > 0 {
		t.Errorf("these alerts fire: %q", got)
	}
}

// Every query, of an alert and of the dashboard, asks for metrics, labels and values that
// a real service has. One installation of Prometheus has several services: each query
// selects by the job and the namespace that a person chose.
func TestQueriesSelectExistingSeries(t *testing.T) {
	t.Parallel()
	families := busy(t).scrape()
	for _, rule := range rules(t) {
		check(t, rule.Alert, rule.Expr, families)
		if !strings.Contains(rule.Expr, "by (job, namespace, ") {
			t.Errorf("%s does not keep the services apart: %s", rule.Alert, rule.Expr)
		}
	}
	b := readBoard(t)
	queries := b.queries()
	if len(queries) < 20 {
		t.Errorf("the dashboard has only %d queries", len(queries))
	}
	for title, query := range queries {
		for _, selector := range check(t, title, variables.Replace(query), families) {
			if text := fmt.Sprint(selector); !strings.Contains(text, `job=~"shop|.*"`) || !strings.Contains(text, `namespace=~"eu|.*"`) {
				t.Errorf("%s asks for %s", title, text)
			}
		}
	}
	for _, v := range b.Templating.List {
		if v.Type != "query" {
			continue
		}
		selector, name, _ := strings.Cut(strings.TrimSuffix(strings.TrimPrefix(v.Query.Query, "label_values("), ")"), ", ")
		check(t, v.Name, variables.Replace(selector), families)
		if name != v.Name && name != "reprise_"+v.Name {
			t.Errorf("the variable %s has the values of %s", v.Name, name)
		}
	}
}

// variables gives the variables of the dashboard the values that select everything.
var variables = strings.NewReplacer("$__rate_interval", "5m", "$__range", "1h", "$label", ".*", "$job", "shop|.*", "$namespace", "eu|.*")

// board is the dashboard.
type board struct {
	Templating struct {
		List []struct {
			Name, Type string
			Query      query
		}
	}
	Panels []struct {
		Title, Description, Type string
		Links                    []struct{ URL string }
		Targets                  []struct {
			Expr  string
			RefID string `json:"refId"`
		}
	}
}

// query is that of a variable; a data source has only a text.
type query struct{ Query string }

func (q *query) UnmarshalJSON(text []byte) error {
	if text[0] == '"' {
		return nil
	}
	type plain query
	return json.Unmarshal(text, (*plain)(q))
}

// queries returns those of the panels by their titles.
func (b *board) queries() map[string]string {
	all := map[string]string{}
	for _, p := range b.Panels {
		for _, target := range p.Targets {
			all[p.Title+" "+target.RefID] = target.Expr
		}
	}
	return all
}

func readBoard(t *testing.T) *board {
	t.Helper()
	text, err := os.ReadFile("../../otel/dashboard.json")
	labtest.Must(t, err)
	b := new(board)
	labtest.Must(t, json.Unmarshal(text, b))
	for _, p := range b.Panels {
		if p.Type != "row" && p.Description == "" {
			t.Errorf("the panel %s does not say what it shows", p.Title)
		}
	}
	return b
}

// check demands that a series matches each selector of a query, for the matchers with a
// known set of values. It returns the selectors.
func check(t *testing.T, title, query string, families map[string]*dto.MetricFamily) [][]*labels.Matcher {
	t.Helper()
	expr, err := parser.ParseExpr(query)
	if err != nil {
		t.Errorf("%s: %v: %s", title, err, query)
		return nil
	}
	selectors := parser.ExtractSelectors(expr)
	for _, selector := range selectors {
		if !matched(selector, families) {
			t.Errorf("%s asks for %v, which no service has", title, selector)
		}
	}
	return selectors
}

var suffix = regexp.MustCompile(`_(bucket|count|sum)$`)

func matched(selector []*labels.Matcher, families map[string]*dto.MetricFamily) bool {
	for name, family := range families {
		for _, m := range family.GetMetric() {
			ok := true
			for _, matcher := range selector {
				value := ""
				if matcher.Name == model.MetricNameLabel {
					value = name
					if suffix.MatchString(matcher.Value) && suffix.ReplaceAllString(matcher.Value, "") == name {
						continue
					}
				}
				for _, l := range m.GetLabel() {
					if l.GetName() == matcher.Name {
						value = l.GetValue()
					}
				}
				ok = ok && matcher.Matches(value)
			}
			if ok {
				return true
			}
		}
	}
	return false
}

// Every alert names its severity, the problem, and an existing heading to read on. So do
// the panels that a person looks at because of an alert.
func TestAlertsLeadToARunbook(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/operate/runbooks.md")
	labtest.Must(t, err)
	var anchors []string
	for line := range strings.Lines(string(text)) {
		if heading, ok := strings.CutPrefix(line, "## "); ok {
			anchors = append(anchors, strings.ReplaceAll(strings.ToLower(strings.TrimSpace(heading)), " ", "-"))
		}
	}
	leads := func(from, url string) {
		t.Helper()
		if _, anchor, _ := strings.Cut(url, "blob/main/docs/operate/runbooks.md#"); !slices.Contains(anchors, anchor) {
			t.Errorf("%s leads to #%s, which docs/operate/runbooks.md does not have: %q", from, anchor, anchors)
		}
	}
	for _, rule := range rules(t) {
		if severity := rule.Labels["severity"]; severity != "page" && severity != "ticket" {
			t.Errorf("%s has the severity %q", rule.Alert, severity)
		}
		if rule.Annotations["summary"] == "" {
			t.Errorf("%s does not say what happened", rule.Alert)
		}
		leads(rule.Alert, rule.Annotations["runbook_url"])
	}
	links := 0
	for _, p := range readBoard(t).Panels {
		for _, link := range p.Links {
			links++
			leads(p.Title, link.URL)
		}
	}
	if links < 10 {
		t.Errorf("%d panels lead to a runbook", links)
	}
}
