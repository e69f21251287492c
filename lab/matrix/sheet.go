package matrix

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/reprise-go/reprise/conformance/adaptertest"
	"github.com/reprise-go/reprise/conformance/storetest"
)

// sheetFile is the page that the matrix writes.
var sheetFile = func() string {
	_, here, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(here), "..", "..", "docs", "engineering", "conformance.md")
}()

// pageMu is held while the page is read and written.
var pageMu sync.Mutex

// sheet holds how every case ended in every combination of store and adapter, and what
// the page shows of it.
type sheet struct {
	mu    sync.Mutex
	ended map[cell]adaptertest.Result
	marks map[mark]string
	gaps  []string // the lines of waivers
}

// cell is a case in a combination.
type cell struct{ id, adapter, store string }

// mark is a place in one of the tables: the row of a case, or of a store, and the column
// of an adapter.
type mark struct{ row, adapter string }

func newSheet() *sheet {
	return &sheet{ended: map[cell]adaptertest.Result{}, marks: map[mark]string{}}
}

// report notes how a case ended.
func (s *sheet) report(adapter, store string) func(adaptertest.Result) {
	return func(r adaptertest.Result) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.ended[cell{r.Case.ID, adapter, store}] = r
	}
}

// finish compares the page with the results, or writes it. Combinations that did not
// run, because a server is missing or only a part was asked for, stay as the page has
// them; the first column begins a new page. A failure is not written.
func (s *sheet) finish(t *testing.T, update bool) {
	t.Helper()
	if t.Failed() {
		return
	}
	pageMu.Lock()
	defer pageMu.Unlock()
	page, err := os.ReadFile(sheetFile)
	if err != nil && !update {
		t.Fatal(err)
	}
	all := readSheet(string(page))
	if _, first := s.ended[cell{adaptertest.Cases()[0].ID, Adapters[0], rows[0].Name}]; first && update {
		all = newSheet()
	}
	all.add(s.ended)
	switch current := all.page(); {
	case current == string(page):
	case update:
		if err := os.WriteFile(sheetFile, []byte(current), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("docs/engineering/conformance.md is not current: %s; run go generate ./lab/matrix", firstDifference(string(page), current))
	}
}

// add puts results on the page. A case passes on an adapter if it does over each store
// that it applies to.
func (s *sheet) add(ended map[cell]adaptertest.Result) {
	passed, waived := map[mark]int{}, map[mark]int{}
	for at, r := range ended {
		c, pair := mark{at.id, at.adapter}, mark{at.store, at.adapter}
		passed[c], passed[pair] = passed[c]+0, passed[pair]+0 // they were there
		switch r.Status {
		case adaptertest.Passed:
			passed[c]++
			passed[pair]++
		case adaptertest.Waived:
			waived[c]++
			waived[pair]++
		case adaptertest.NotApplicable, adaptertest.Failed: // it is not counted, or the test fails
		}
		if line := fmt.Sprintf("- %s, %s: %s", at.id, at.adapter, r.Reason); r.Status == adaptertest.Waived && !slices.Contains(s.gaps, line) {
			s.gaps = append(s.gaps, line)
		}
	}
	for at := range passed {
		isStore := slices.Contains(storeNames(), at.row)
		switch text := strconv.Itoa(passed[at]); {
		case isStore && waived[at] > 0:
			s.marks[at] = fmt.Sprintf("%s, w %d", text, waived[at])
		case isStore:
			s.marks[at] = text
		case waived[at] > 0 && s.marks[at] != "✓":
			s.marks[at] = "w"
		case passed[at] > 0 && s.marks[at] != "w":
			s.marks[at] = "✓"
		}
	}
}

// page is the page of the sheet.
func (s *sheet) page() string {
	var b strings.Builder
	row := func(name, more string) {
		b.WriteString("| " + name + " |" + more)
		for _, a := range Adapters {
			fmt.Fprintf(&b, " %s |", s.marks[mark{name, a}])
		}
		b.WriteString("\n")
	}
	head := func(columns string, n int) {
		fmt.Fprintf(&b, "| %s | %s |\n|%s\n", columns, strings.Join(Adapters, " | "), strings.Repeat("---|", n+len(Adapters)))
	}
	fmt.Fprintf(&b, sheetHead, len(smoke), len(storeNames()))
	head("store", 1)
	for _, store := range storeNames() {
		row(store, "")
	}
	fmt.Fprintf(&b, sheetCases, len(adaptertest.Cases()))
	head("case | rule | source", 3)
	for _, c := range adaptertest.Cases() {
		row(c.ID, fmt.Sprintf(" %s | %s |", c.Rule, c.Source))
	}
	b.WriteString("\n## Waivers\n\nA waived case runs, and the build fails once it passes.\n\n")
	b.WriteString(strings.Join(slices.Sorted(slices.Values(s.gaps)), "\n") + "\n")
	fmt.Fprintf(&b, sheetStores, len(storetest.Cases()))
	b.WriteString("| case | rule | source |\n|---|---|---|\n")
	for _, c := range storetest.Cases() {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", c.ID, c.Rule, c.Source)
	}
	return b.String()
}

// readSheet parses a page.
func readSheet(page string) *sheet {
	s := newSheet()
	var columns []string
	for line := range strings.Lines(page) {
		if strings.HasPrefix(line, "- ") {
			s.gaps = append(s.gaps, strings.TrimSpace(line))
			continue
		}
		row := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for i := range row {
			row[i] = strings.TrimSpace(row[i])
		}
		if row[0] == "store" || row[0] == "case" {
			columns = row
			continue
		}
		for i, column := range columns[:min(len(columns), len(row))] {
			if slices.Contains(Adapters, column) && row[i] != "" && row[i] != "---" {
				s.marks[mark{row[0], column}] = row[i]
			}
		}
	}
	return s
}

func storeNames() []string {
	names := make([]string, len(rows))
	for i := range rows {
		names[i] = rows[i].Name
	}
	return append(names, elsewhere...)
}

// firstDifference shows where two pages part.
func firstDifference(was, is string) string {
	a, b := slices.Collect(strings.Lines(was)), slices.Collect(strings.Lines(is))
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return fmt.Sprintf("line %d is %q, want %q", i+1, a[i], b[i])
		}
	}
	return fmt.Sprintf("it has %d lines, want %d", len(a), len(b))
}

const sheetHead = `# What is tested, on what

The tests write this page (` + "`go generate ./lab/matrix`" + `), and one of them fails when it is not current.

## Every adapter over every store

%d smoke cases, and those about atomic claims, run on each adapter over each of %d stores; over memory, all cases do.
A number is how many pass, and w how many are waived (below); what does not apply to a store is not counted.
Over etcd+redis, response bodies of more than 64 bytes are in Redis, unless the case has limits of its own.
Over both rows of etcd, Fiber v2 runs on the fasthttp of v3.

`

const sheetCases = `
## Adapters

%d cases, each on a real listener with native handlers. A case is named after its rule in [protocol.md](protocol.md); cases that begin with T are bugs that were found in other libraries.
✓ passes wherever it ran, w is waived (below).

`

const sheetStores = `
## Stores

%d cases, which run on every store in every supported deployment.

`
