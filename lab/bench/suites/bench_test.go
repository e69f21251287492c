package suites

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/reprise-go/reprise/lab/bench/report"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/lab/matrix"
	"github.com/reprise-go/reprise/lab/serve"
)

func TestMain(m *testing.M) { labtest.Main(m) }

// Every suite runs to its end, in a form that takes seconds and gives meaningless
// numbers.
func TestSmoke(t *testing.T) {
	t.Parallel()
	if labtest.RaceEnabled {
		t.Skip("make figures runs it: its programs measure, and the race detector is slow")
	}
	for _, suites := range []string{"redis,postgres,pooler,effect", "sqlite,mysql,etcd", "adapters,proxy,delay,keys", "cost"} {
		t.Run(suites, func(t *testing.T) {
			t.Parallel()
			smoke(t, suites)
		})
	}
	if got := len(program{}.names()); got != 12 {
		t.Errorf("there are %d suites, of which 12 run", got)
	}
}

func smoke(t *testing.T, suites string) {
	t.Helper()
	docs := t.TempDir()
	page := filepath.Join(docs, "benchmarks.md")
	labtest.Must(t, os.WriteFile(page, []byte("prose\n<!-- made: results -->\nold\n<!-- end -->\n"), 0o600))
	var out bytes.Buffer
	err := program{command: "bench %s", args: []string{
		"-suites", suites, "-rounds", "1", "-time", "20ms", "-warmup", "5ms", "-connections", "2,8", "-delays", "0s,2ms",
		"-keys", "50,200", "-each", "200",
		"-variants", "nethttp|raw2|setnx|statements|rows|two Txns|handler|fiber|[pP]roxy", "-docs", docs,
	}}.run(t.Context(), &out)
	t.Log(out.String())
	labtest.Must(t, err)
	results, err := report.Read(filepath.Join(docs, report.File))
	labtest.Must(t, err)
	for name := range strings.SplitSeq(suites, ",") {
		s := results[name]
		if written, err := os.ReadFile(page); err != nil || strings.Contains(string(written), "old") || !strings.Contains(string(written), "| `"+name+"` | "+s.Date) {
			t.Errorf("the page does not have the suite %s: %v", name, err)
		}
		if len(s.Rows) == 0 && len(s.LeftOut) == 0 {
			t.Errorf("the suite %s has no rows", name)
		}
		if !strings.HasPrefix(s.Command, "bench -suites "+suites) {
			t.Errorf("%s was made by %s", name, s.Command)
		}
		for _, r := range s.Rows {
			switch {
			case r.PerSecond <= 0, r.P50 <= 0, r.P50 > r.P99:
				t.Errorf("%s: %s reached %v requests per second, in %v and %v µs", name, r.Variant, r.PerSecond, r.P50, r.P99)
			case name == "redis" && r.Variant == "nethttp+redis" && (r.Ratios["raw2"].PerSecond <= 0 || r.Ratios["nethttp"].PerSecond <= 0):
				t.Errorf("%+v is not compared with its floors", r)
			case name == "keys" && r.Variant == "nethttp+postgres" && r.Values["log_bytes_per_key"] < 100, name == "cost" && r.Variant == "nethttp+redis" && r.Values["commands"] < 1:
				t.Errorf("%s: %+v has no counters", name, r)
			}
		}
	}
}

// Every store is measured under net/http, and every adapter of the lab over the stores
// that make a difference to it: see the variable adapterStores. The names of the stores
// are those of the module lab, so not that of etcd.
func TestEveryAdapterAndEveryStoreAreMeasured(t *testing.T) {
	t.Parallel()
	var measured []string
	for _, c := range comparisons() {
		for _, v := range c.Variants {
			measured = append(measured, v.Name)
		}
	}
	want := []string{"nethttp+etcd"}
	for _, store := range serve.Stores() {
		want = append(want, "nethttp+"+store)
	}
	for _, adapter := range matrix.Adapters {
		for _, store := range adapterStores {
			want = append(want, adapter+"+"+store)
		}
	}
	for _, name := range want {
		if !slices.Contains(measured, name) {
			t.Errorf("%s is not measured", name)
		}
	}
}

// The page and its chart follow from the results: after a change of
// docs/engineering/benchmarks.json or of the package report, run
// go run ./lab/bench -suites= -docs docs/engineering.
func TestThePageFollowsFromTheResults(t *testing.T) {
	t.Parallel()
	files, err := report.Page(filepath.Join("..", "..", "..", "docs", "engineering"))
	labtest.Must(t, err)
	for name, want := range files {
		got, err := os.ReadFile(name)
		if err != nil || string(got) != want {
			t.Errorf("%s is not what the results make of it (%v): run go run ./lab/bench -suites= -docs docs/engineering", name, err)
		}
	}
}

// Flags that make no sense are refused.
func TestFlags(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"-suites", "redis,nothing"}, {"-connections", "1,x"}, {"-delays", "8"}, {"-variants", "("}} {
		if _, err := (program{args: args}).parse(); err == nil {
			t.Errorf("%v is accepted", args)
		}
	}
}

// A ratio is the median of the ratios within each round: a machine that gets slower
// changes none.
func TestRatiosAreTakenWithinARound(t *testing.T) {
	t.Parallel()
	var ours, floor []sample
	for _, speed := range []float64{1, .5, .25, .1, 1, 1} {
		floor = append(floor, sample{perSecond: 1000 * speed, server: 40 / speed, store: 10 / speed})
		ours = append(ours, sample{perSecond: 1500 * speed, server: 20 / speed, store: 5 / speed})
	}
	if got, want := ratio(ours, floor), (report.Ratio{PerSecond: 1.5, Low: 1.5, High: 1.5, CPU: .5}); got != want {
		t.Errorf("ratio %+v, want %+v", got, want)
	}
	if got := quantile([]float64{4, 1, 3, 2}, .5); got != 2.5 {
		t.Errorf("the median of four is %v", got)
	}
}
