package suites

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/reprise-go/reprise/lab/bench/load"
	"github.com/reprise-go/reprise/lab/bench/report"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/lab/matrix"
	"github.com/reprise-go/reprise/lab/serve"
	"github.com/reprise-go/reprise/servers"
)

func TestMain(m *testing.M) {
	if !load.Main(context.Background()) {
		labtest.Main(m)
	}
}

// Every suite runs to its end, in a form that takes seconds and gives meaningless
// numbers.
func TestSmoke(t *testing.T) {
	t.Parallel()
	if labtest.RaceEnabled {
		t.Skip("make figures runs it: its programs measure, and the race detector is slow")
	}
	for _, suites := range []string{"redis,postgres,pooler,effect", "sqlite,mysql,etcd", "adapters,pools,proxy,delay,keys", "cost", "sustained", "inflight"} {
		t.Run(suites, func(t *testing.T) {
			t.Parallel()
			smoke(t, suites)
		})
	}
	if got := len(program{}.names()); got != 15 {
		t.Errorf("there are %d suites, of which 15 run", got)
	}
}

func smoke(t *testing.T, suites string, more ...string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "results.json")
	var out bytes.Buffer
	err := program{command: "bench %s", args: append([]string{
		"-suites", suites, "-rounds", "1", "-time", "20ms", "-warmup", "5ms", "-connections", "2,8", "-delays", "0s,2ms",
		"-keys", "50,200", "-each", "200", "-for", "2s", "-rate", "50", "-inflight", "40", "-hold", "2500ms",
		"-variants", "nethttp|raw2|setnx|statements|rows|two Txns|handler|fiber|[pP]roxy|theirs", "-out", file,
	}, more...)}.run(t.Context(), &out)
	t.Log(out.String())
	if err != nil {
		t.Fatal(err)
	}
	results, err := report.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	for name := range strings.SplitSeq(suites, ",") {
		s := results[name]
		if len(s.Rows) == 0 && len(s.LeftOut) == 0 {
			t.Errorf("the suite %s has no rows", name)
		}
		if !strings.Contains(s.Command, "-suites "+name+" ") || strings.Contains(s.Command, file) {
			t.Errorf("%s was made by %s", name, s.Command)
		}
		for _, r := range s.Rows {
			switch {
			case name == "inflight":
				if r.Kind == "new" && r.Values["server_bytes"] <= 0 && runtime.GOOS == "linux" {
					t.Errorf("%s: %+v takes no memory", name, r)
				}
			case r.PerSecond <= 0:
				t.Errorf("%s: %s reached %v requests per second", name, r.Variant, r.PerSecond)
			case name == "redis" && r.Variant == "nethttp+redis" && (r.Ratios["raw2"].PerSecond <= 0 || r.Ratios["nethttp"].PerSecond <= 0):
				t.Errorf("%+v is not compared with its floors", r)
			case name == "also" && r.Variant == "nethttp+redis" && r.Ratios["theirs+redis"].PerSecond <= 0:
				t.Errorf("%+v is not compared with the other library", r)
			case name == "sustained" && r.Values["wal_bytes_per_request"] < 100:
				t.Errorf("%+v wrote no log", r)
			}
		}
	}
}

// The flag also puts a server of another library into a separate suite, beside Reprise
// over the same kind of store.
func TestAlsoMeasuresAServerOfAnotherLibrary(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"-also", "no command"}, {"-also", "=command"}, {"-suites", "also"}} {
		if _, err := (program{args: args}).parse(); err == nil {
			t.Errorf("%q is accepted", args)
		}
	}
	o, err := program{args: []string{"-suites", "redis", "-also", "theirs+memory=server -x", "-also", "theirs+redis=server -redis {redis}"}}.parse()
	if err != nil || !slices.Equal(o.suites, []string{"redis", "also"}) {
		t.Fatalf("the suites %q, %v", o.suites, err)
	}
	got := map[string][]string{}
	for _, v := range beside(o.also).Variants {
		got[v.Name] = v.Bases
	}
	want := map[string][]string{
		"nethttp": nil, "theirs+memory": {"nethttp"}, "theirs+redis": {"nethttp"},
		"nethttp+memory": {"nethttp", "theirs+memory"}, "nethttp+redis": {"nethttp", "theirs+redis"},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if labtest.RaceEnabled {
		return // make figures runs the rest
	}
	theirs := filepath.Join(t.TempDir(), "theirs")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", theirs, "../../nethttp/floors").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	smoke(t, "also", "-also", "theirs+redis="+theirs+" -floor redis -redis-url redis://{redis}")
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

// The page and its pictures follow from the results: after a change of
// docs/engineering/benchmarks.json or of the package report, run go run ./lab/bench
// pages.
func TestPagesFollowFromTheResults(t *testing.T) {
	t.Parallel()
	docs := filepath.Join("..", "..", "..", "docs", "engineering")
	files, err := report.Pages(docs)
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 5 {
		t.Errorf("only %d files follow from the results", len(files))
	}
	for name, want := range files {
		got, err := os.ReadFile(name)
		if err != nil || string(got) != want {
			t.Errorf("%s is not what docs/engineering/benchmarks.json makes of it (%v): run go run ./lab/bench pages", name, err)
		}
	}
}

// Flags that make no sense are refused, and a command names the flags that matter.
func TestFlags(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"-suites", "redis,nothing"}, {"-connections", "1,x"}, {"-delays", "8"}, {"-variants", "("}} {
		if _, err := (program{args: args}).parse(); err == nil {
			t.Errorf("%v is accepted", args)
		}
	}
	o, err := program{args: []string{"-full"}}.parse()
	if err != nil || o.keys[len(o.keys)-1] != 1_000_000 || o.inflight != 10_000 {
		t.Errorf("-full: %+v, %v", o, err)
	}
	got := o.flagsFor([]string{"-suites=redis,keys", "-rounds", "8", "-out", "x.json"}, "keys")
	if want := []string{"-suites", "keys", "-rounds", "8"}; !slices.Equal(got, want) {
		t.Errorf("flags %v, want %v", got, want)
	}
}

// Other processes' share is the machine's without the benchmark's.
func TestOthersAreWithoutTheBenchmark(t *testing.T) {
	t.Parallel()
	at := time.Now()
	before := machineUse{at: at, all: 10 * time.Second, ours: servers.Usage{1: time.Second}}
	after := machineUse{at: at.Add(2 * time.Second), all: 14 * time.Second, ours: servers.Usage{1: 2 * time.Second, 2: time.Second}}
	if got := after.others(before); got != 1 {
		t.Errorf("others used %v cores, want 1", got)
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
