package report

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// some are results of every suite that has a table.
func some() Results {
	r := Results{}
	for name := range tables {
		s := Suite{Command: "go run ./lab/bench -suites " + name, Date: "2026-01-02", Commit: "abc", Machine: Machine{Cores: 2, Redis: "7.0", Load: .2, After: 2.5}, Rounds: 6, Seconds: .5, LeftOut: []string{"a peer: refused"}}
		for _, kind := range []string{"new", "replay"} {
			for i, n := range []int{1, 64} {
				s.Rows = append(
					s.Rows,
					Row{Variant: "nethttp", Kind: kind, Connections: n, PerSecond: 3000, ServerCPU: 15, P50: 300},
					Row{Variant: "raw2", Kind: kind, Connections: n, PerSecond: 1000, ServerCPU: 40, StoreCPU: 10},
					Row{
						Variant: "nethttp+redis", Kind: kind, Connections: n, RoundTrip: "1ms", Keys: 10_000 * (i + 1), PerSecond: 1600, ServerCPU: 20, StoreCPU: 10, P50: 1000, P99: 2000,
						Ratios: map[string]Ratio{"raw2": {PerSecond: 1.6, Low: 1.5, High: 1.7, CPU: .6}},
						Values: map[string]float64{
							"bytes_per_key": 540 + 20*float64(i), "at": float64(1 + 9*i), "purged": 1, "bytes_per_attempt": 900,
							"bytes": 1400, "commands": 2.5, "log_bytes": 1800, "log_bytes_per_key": 1000,
						},
					},
				)
			}
		}
		r[name] = s
	}
	return r
}

// folder is a folder of documentation with a page that has every part.
func folder(t *testing.T, r Results) (docs string) {
	t.Helper()
	root := t.TempDir()
	docs = filepath.Join(root, "docs", "engineering")
	write := func(name, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(filepath.Join(root, "README.md"), "# Reprise\n\n<!-- figures -->old<!-- end -->\n")
	write(filepath.Join(docs, "..", "guides", "which-store.md"), "| Redis | <!-- added: redis nethttp+redis -->old<!-- end --> | prose <!-- added: mysql nethttp+mysql --><!-- end --> |\n")
	write(filepath.Join(docs, "cost.md"), "# Cost\n\n<!-- made: day -->\n<!-- end -->\n")
	write(filepath.Join(docs, "growth.md"), "# Growth\n\n<!-- made: keys -->\nold\n<!-- end -->\n\n<!-- made: billion -->\n<!-- end -->\n")
	page := new(bytes.Buffer)
	page.WriteString("# Figures\n\nprose\n\n")
	for _, name := range []string{"adds", "peers", "floors", "targets", "added", "share"} {
		fmt.Fprintf(page, "<!-- made: %s -->\n<!-- end -->\n\n", name)
	}
	for name := range tables {
		fmt.Fprintf(page, "\n<!-- made: %s -->\nold\n<!-- end -->\n\nmore prose about %[1]s\n", name)
	}
	write(filepath.Join(docs, "benchmarks.md"), page.String())
	write(filepath.Join(docs, "benchmark-tables.md"), "# Tables\n")
	if err := r.Write(filepath.Join(docs, "benchmarks.json")); err != nil {
		t.Fatal(err)
	}
	return docs
}

// Every part of the page is made anew, its prose stays, and a second run leaves it
// unchanged.
func TestPagesAreMadeFromResults(t *testing.T) {
	t.Parallel()
	docs := folder(t, some())
	files, err := Pages(docs)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(docs, "benchmarks.md")
	page := files[file]
	if strings.Contains(page, "\nold\n") || !strings.Contains(page, "more prose about redis") {
		t.Errorf("the page is\n%s", page)
	}
	for _, want := range []string{
		"| nethttp+redis | 1.60, CPU 0.60 | 1.60, CPU 0.60 |",
		"| nethttp+redis | 1600 | 20 + 10 | 1.0, 2.0 | 1.60 × raw2 (1.50–1.70) |",
		"Made by `go run ./lab/bench -suites redis` on 2026-01-02 at abc",
		"load average before it 0.2, after it 2.5; 6 shuffled rounds of 0.5 s",
		"Left out: a peer: refused.",
		"| P3 | Redis: new key × raw2 | 64 | ≥ 1.50, CPU ≤ 0.65 | 1.60 (1.50–1.70), CPU 0.60 |",
		"| P9 | Redis: bytes of a completed key, at most (with a field of the test server) | every number | ≤ 550 | 560 |",
		"| P8 | transactional: new key × INSERT and UPDATE | 64 | ≥ 0.75 | – |",
		"| Redis | 2; 1 | 700, 2000 | 700, 2000 | 15, 15 |",
		"| etcd | 2; 1 | – | – | – |",
		"Redis 700 and 700",
		"| Redis | raw2 | 1.60, –, 1.60 | 1.60, –, 1.60 |",
		"| nethttp+redis | 0.70 | 0.70 |",
		"| nethttp+postgres | – | – |",
		"| nethttp+redis | 10, –, 10 | 10, –, 10 |",
		`srcset="benchmarks/redis-dark.svg"`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	for name, want := range map[string]string{
		"../guides/which-store.md": "| Redis | <!-- added: redis nethttp+redis -->0.70, 0.70<!-- end --> | prose <!-- added: mysql nethttp+mysql -->–<!-- end --> |\n",
		"../../README.md":          "<!-- figures -->It adds 0.70 ms to a new key and 0.70 ms to a replay over Redis (median, one connection, loopback, 2 cores, 2026-01-02); your network's round trips come on top, two for a new key and one for a replay.<!-- end -->",
		"cost.md":                  "| Redis | 1.4 | 1.8 | 5.0 | 10 | 20 | 0.03 % | 1600, 1600 |",
		"growth.md":                "| nethttp+redis | 560 | 1000 | 12 | 0.1 | 1.0 | 1.0 | –, by the server |",
	} {
		if got := files[filepath.Join(docs, filepath.FromSlash(name))]; !strings.Contains(got, want) {
			t.Errorf("%s is %s, which lacks %s", name, got, want)
		}
	}
	if err := os.WriteFile(file, []byte(page), 0o600); err != nil {
		t.Fatal(err)
	}
	if again, err := Pages(docs); err != nil || again[file] != page {
		t.Errorf("made twice it is another page, %v", err)
	}
	if t.Failed() {
		t.Log(page)
	}
}

// A part that no results belong to is an error, not an empty table.
func TestPartsWithoutResultsAreRefused(t *testing.T) {
	t.Parallel()
	r := some()
	delete(r, "delay")
	if _, err := Pages(folder(t, r)); err == nil || !strings.Contains(err.Error(), `"delay"`) {
		t.Errorf("a part without results: %v", err)
	}
}

// Responses in place of the handler's are listed by their codes, and figures with one
// that no policy promises are refused.
func TestOtherAnswersAreNamedOrRefused(t *testing.T) {
	t.Parallel()
	r := some()
	r["inflight"].Rows[0].Others = map[string]int64{"503 store-unavailable": 3}
	docs := folder(t, r)
	files, err := Pages(docs)
	if page := files[filepath.Join(docs, "benchmarks.md")]; err != nil || !strings.Contains(page, "| 3 × 503 store-unavailable |") || !strings.Contains(page, "| none |") {
		t.Errorf("%v, the page is\n%s", err, page)
	}
	for _, answer := range []string{"500", "409 in-progress", "503"} {
		r["inflight"].Rows[0].Others = map[string]int64{answer: 1}
		if _, err := Pages(folder(t, r)); err == nil || !strings.Contains(err.Error(), "the answer "+answer) {
			t.Errorf("figures with the answer %s: %v", answer, err)
		}
	}
}

// The pictures are XML without external references, one for each theme.
func TestPicturesStandAlone(t *testing.T) {
	t.Parallel()
	files, err := Pages(folder(t, some()))
	if err != nil {
		t.Fatal(err)
	}
	pictures := 0
	for name, text := range files {
		if filepath.Ext(name) != ".svg" {
			continue
		}
		pictures++
		if strings.Contains(text, "%!") || !strings.Contains(text, "<title>") || !strings.Contains(text, "<desc>") {
			t.Errorf("%s has no title or description, or a broken number: %s", name, text)
		}
		for d := xml.NewDecoder(strings.NewReader(text)); ; {
			token, err := d.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			element, ok := token.(xml.StartElement)
			if !ok {
				continue
			}
			if n := element.Name.Local; n == "script" || n == "style" || n == "image" || n == "use" {
				t.Errorf("%s has an element %s", name, n)
			}
			for _, a := range element.Attr {
				if a.Name.Local == "href" || a.Name.Local != "xmlns" && strings.Contains(a.Value, "//") {
					t.Errorf("%s refers to %s", name, a.Value)
				}
			}
		}
	}
	if want := (len(charts) + 1) * len(themes); pictures != want {
		t.Errorf("%d pictures, want %d", pictures, want)
	}
}

// About five ticks, on round numbers.
func TestTicksAreRound(t *testing.T) {
	t.Parallel()
	for highest, want := range map[float64]float64{0: 1, 4.9: 1, 6: 2, 48_500: 10_000, 160: 50, 99: 20, 101: 50} {
		if got := tick(highest); got != want {
			t.Errorf("up to %v the ticks are %v apart, want %v", highest, got, want)
		}
	}
}
