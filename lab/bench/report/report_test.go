package report

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/reprise-go/reprise/lab/internal/labtest"
)

// some are results of two suites.
func some() Results {
	compared := func(variant string, n int, x float64) []Row {
		var rows []Row
		for _, kind := range []string{fresh, replay} {
			rows = append(
				rows,
				Row{Variant: "nethttp", Kind: kind, Connections: n, PerSecond: 3000, ServerCPU: 15, P50: 300},
				Row{Variant: "raw2", Kind: kind, Connections: n, PerSecond: 1000, ServerCPU: 40, StoreCPU: 10},
				Row{
					Variant: variant, Kind: kind, Connections: n, PerSecond: 1600, ServerCPU: 20, StoreCPU: 10, P50: 1000, P99: 2000,
					Ratios: map[string]Ratio{"raw2": {PerSecond: x, Low: 1, High: 2, CPU: .6}},
				},
			)
		}
		return rows
	}
	m := Machine{Cores: 2, CPU: "a CPU", Go: "go1.26", Redis: "7.0", Load: .2, After: 2.5}
	return Results{
		"redis": {Date: "2026-01-02", Commit: "abc", Machine: m, Rounds: 6, Seconds: .5, LeftOut: []string{"a peer: refused"}, Rows: append(compared("nethttp+redis", 1, .5), compared("nethttp+redis", 64, 1.4)...)},
		"keys":  {Rows: []Row{{Variant: "nethttp+redis", Kind: fresh, Values: map[string]float64{"bytes_per_key": 540}}, {Variant: "nethttp+redis", Kind: fresh, Values: map[string]float64{"bytes_per_key": 560}}}},
		"delay": {Rows: []Row{
			{Variant: "nethttp+redis", Kind: fresh, Connections: 8, RoundTrip: "1ms", Ratios: map[string]Ratio{oneByOne: {PerSecond: 1.2}}},
			{Variant: "nethttp+redis", Kind: fresh, Connections: 8, RoundTrip: "8ms", Ratios: map[string]Ratio{oneByOne: {PerSecond: .9}}},
		}},
		"fiber": {Rows: []Row{{Variant: "Fiber v2", Kind: fresh, Connections: 64, PerSecond: 9, ServerCPU: 10}, {Variant: "Reprise+memory", Kind: fresh, Connections: 64, PerSecond: 6, ServerCPU: 13.5}}},
	}
}

// folder is a folder of documentation.
func folder(t *testing.T, r Results, page string) (docs string) {
	t.Helper()
	docs = t.TempDir()
	labtest.Must(t, errors.Join(r.Write(filepath.Join(docs, File)), os.WriteFile(filepath.Join(docs, "benchmarks.md"), []byte(page), 0o600)))
	return docs
}

const page = "prose\n<!-- made: results -->\nold\n<!-- end -->\nmore prose\n"

// The table has targets beside figures, and says which are missed. The prose stays, and a
// second run changes nothing.
func TestThePageIsMadeFromResults(t *testing.T) {
	t.Parallel()
	docs := folder(t, some(), page)
	labtest.Must(t, WritePage(docs))
	text, err := os.ReadFile(filepath.Join(docs, "benchmarks.md"))
	labtest.Must(t, err)
	got := string(text)
	for _, want := range []string{
		"prose\n<!-- made: results -->\n", "<!-- end -->\nmore prose\n",
		"| Redis | new key | raw2 | 700 | 1: 0.50 (1.00–2.00)<br>64: 1.40 (1.00–2.00) | 0.60 | 50, 30 | P3<br>64: ≥ 1.5<br>CPU × ≤ 0.65 | **missed**: 64 |\n",
		"| Redis | replay | raw2 | 700 | 1: 0.50 (1.00–2.00)<br>64: 1.40 (1.00–2.00) | 0.60 | 50, 30 | P3<br>64: ≥ 1.3<br>CPU × ≤ 0.7 | reached |\n",
		"| Redis, bytes of a completed key | new key | – | – | 560 bytes | – | – | P9<br>bytes ≤ 550 | **missed**: bytes 560 |\n",
		"the worst | new key | nethttp+redis, one by one | – | 8: 0.90 ",
		"| Fiber v2 over memory | new key | Fiber v2 | – | 64: 0.67 (0.67–0.67) | 1.35 | 10, 14 | P6<br>CPU µs more ≤ 4 | reached |\n",
		"| etcd | new key | two Txns | – | – | – | – |  |  |\n",
		"| `redis` | 2026-01-02, abc | 2 × a CPU; go1.26, Redis 7.0 | 0.2, 2.5 | 6 of 0.5 s | a peer: refused |\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if again, err := Page(docs); err != nil || again[filepath.Join(docs, "benchmarks.md")] != got || strings.Contains(got, "\nold\n") {
		t.Errorf("made twice it is another page, %v", err)
	}
	if t.Failed() {
		t.Log(got)
	}
}

// Without its part, a page is refused.
func TestAPageWithoutAPartForTheResultsIsRefused(t *testing.T) {
	t.Parallel()
	if _, err := Page(folder(t, some(), "prose\n")); err == nil {
		t.Error("it is accepted")
	}
}

// The chart is XML without external references, with a bar for each measured value.
func TestTheChartStandsAlone(t *testing.T) {
	t.Parallel()
	chart := some().chart()
	if strings.Contains(chart, "%!") || strings.Count(chart, `height="15"`) != 2 || !strings.Contains(chart, ">700</text>") || strings.Contains(chart, "href") {
		t.Errorf("the chart is %s", chart)
	}
	for d := xml.NewDecoder(strings.NewReader(chart)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatal(err)
		}
	}
}
