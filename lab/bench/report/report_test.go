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
						Values: map[string]float64{"bytes_per_key": 540 + 20*float64(i), "at": float64(i), "purged": 1, "bytes_per_attempt": 900},
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
	docs = filepath.Join(t.TempDir(), "engineering")
	if err := os.Mkdir(docs, 0o700); err != nil {
		t.Fatal(err)
	}
	stores := "| Redis | <!-- added: redis nethttp+redis -->old<!-- end --> | prose <!-- added: mysql nethttp+mysql --><!-- end --> |\n"
	if err := os.WriteFile(filepath.Join(docs, choice), []byte(stores), 0o600); err != nil {
		t.Fatal(err)
	}
	page := new(bytes.Buffer)
	page.WriteString("# Figures\n\nprose\n\n<!-- made: targets -->\n<!-- end -->\n\n<!-- made: added -->\n<!-- end -->\n\n<!-- made: share -->\n<!-- end -->\n")
	for name := range tables {
		fmt.Fprintf(page, "\n<!-- made: %s -->\nold\n<!-- end -->\n\nmore prose about %[1]s\n", name)
	}
	if err := os.WriteFile(filepath.Join(docs, "benchmarks.md"), page.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
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
		"| P3 | Redis: new key × raw2 | 64 | ≥ 1.50, CPU ≤ 0.65 | 1.60 (1.50–1.70), CPU 0.60 | met |",
		"| P9 | Redis: bytes of a completed key, at most (with a field of the test server) | every number | 550 | 560 | **missed** |",
		"| P8 | transactional: new key × INSERT and UPDATE | 64 | ≥ 0.75 | – | not measured |",
		"| nethttp+redis | 0.70 | 0.70 |",
		"| nethttp+postgres | – | – |",
		"| nethttp+redis | 10, –, 10 | 10, –, 10 |",
		`srcset="benchmarks/redis-dark.svg"`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	want := "| Redis | <!-- added: redis nethttp+redis -->0.70, 0.70<!-- end --> | prose <!-- added: mysql nethttp+mysql -->–<!-- end --> |\n"
	if got := files[filepath.Join(docs, choice)]; got != want {
		t.Errorf("the page of the stores is %q, want %q", got, want)
	}
	if n := strings.Count(page, "| nethttp+sqlite |"); n != 1 {
		t.Errorf("SQLite, which has no server, is in %d tables of all stores, want that of latencies", n)
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
	if want := len(charts) * len(themes); pictures != want {
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
