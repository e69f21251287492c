package matrix

import (
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"runtime"
	"slices"
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

// sheet holds how every case ended in every combination of store and adapter.
type sheet struct {
	mu     sync.Mutex
	cells  map[cell]adaptertest.Status
	waived map[cell]string // the reasons
}

// cell is a case in a combination.
type cell struct{ id, adapter, store string }

func newSheet() *sheet {
	return &sheet{cells: make(map[cell]adaptertest.Status), waived: make(map[cell]string)}
}

// report notes how a case ended.
func (s *sheet) report(adapter, store string) func(adaptertest.Result) {
	return func(r adaptertest.Result) {
		s.mu.Lock()
		defer s.mu.Unlock()
		at := cell{r.Case.ID, adapter, store}
		s.cells[at] = r.Status
		if r.Status == adaptertest.Waived {
			s.waived[at] = r.Reason
		}
	}
}

// finish compares the page with the results, or writes it. Combinations that did not run,
// because a server is missing or only a part was asked for, stay as the page has them. A
// failure is not written.
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
	for at, status := range s.cells {
		all.cells[at] = status
		delete(all.waived, at)
		if status == adaptertest.Waived {
			all.waived[at] = s.waived[at]
		}
	}
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

// The marks of the page.
var marks = map[adaptertest.Status]string{
	adaptertest.Passed: "✓", adaptertest.Waived: "w", adaptertest.NotApplicable: "–",
}

const unknownMark = "·"

// page is the page of the sheet.
func (s *sheet) page() string {
	var b strings.Builder
	cases, adapters, stores := adaptertest.Cases(), Adapters, storeNames()
	fmt.Fprintf(&b, sheetHead, len(cases), len(adapters), len(stores), strings.Join(stores, ", "))
	b.WriteString("| case | rule | source |")
	for _, a := range adapters {
		fmt.Fprintf(&b, " %s |", a)
	}
	b.WriteString("\n|---|---|---|" + strings.Repeat("---|", len(adapters)) + "\n")
	for _, c := range cases {
		fmt.Fprintf(&b, "| %s | %s | %s |", c.ID, c.Rule, c.Source)
		for _, a := range adapters {
			for _, store := range stores {
				mark, known := marks[s.cells[cell{c.ID, a, store}]]
				if !known {
					mark = unknownMark
				}
				b.WriteString(" " + mark)
			}
			b.WriteString(" |")
		}
		b.WriteString("\n")
	}
	b.WriteString("\n## Waivers\n\nA waived case runs, and the build fails once it passes.\n\n")
	for _, c := range cases {
		for _, a := range adapters {
			for reason, over := range s.waiversOf(c.ID, a, stores) {
				fmt.Fprintf(&b, "- %s, %s over %s: %s\n", c.ID, a, strings.Join(over, " and "), reason)
			}
		}
	}
	fmt.Fprintf(&b, sheetStores, len(storetest.Cases()))
	b.WriteString("| case | rule | source |\n|---|---|---|\n")
	for _, c := range storetest.Cases() {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", c.ID, c.Rule, c.Source)
	}
	return b.String()
}

// waiversOf yields the reasons for which an adapter is waived a case, each with the
// stores over which it is.
func (s *sheet) waiversOf(id, adapter string, stores []string) iter.Seq2[string, []string] {
	return func(yield func(string, []string) bool) {
		var reasons []string
		over := make(map[string][]string)
		for _, store := range stores {
			reason, waived := s.waived[cell{id, adapter, store}]
			if !waived {
				continue
			}
			if over[reason] == nil {
				reasons = append(reasons, reason)
			}
			over[reason] = append(over[reason], store)
		}
		for _, reason := range reasons {
			if !yield(reason, over[reason]) {
				return
			}
		}
	}
}

// readSheet parses a page.
func readSheet(page string) *sheet {
	s := newSheet()
	stores := storeNames()
	var adapters []string
	for row := range strings.Lines(page) {
		if rest, found := strings.CutPrefix(row, "- "); found {
			at, reason, _ := strings.Cut(strings.TrimSpace(rest), ": ")
			id, combination, _ := strings.Cut(at, ", ")
			adapter, over, _ := strings.Cut(combination, " over ")
			for store := range strings.SplitSeq(over, " and ") {
				s.waived[cell{id, adapter, store}] = reason
			}
			continue
		}
		columns := strings.Split(strings.Trim(strings.TrimSpace(row), "|"), "|")
		if len(columns) <= 3 {
			continue
		}
		for i := range columns {
			columns[i] = strings.TrimSpace(columns[i])
		}
		if columns[0] == "case" {
			adapters = columns[3:]
			continue
		}
		for i, adapter := range adapters[:min(len(adapters), len(columns)-3)] {
			for j, mark := range strings.Fields(columns[3+i]) {
				for status, m := range marks {
					if m == mark && j < len(stores) {
						s.cells[cell{columns[0], adapter, stores[j]}] = status
					}
				}
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

## Adapters

%d cases, each on a real listener with native handlers, for %d adapters over %d stores.
A case is named after its rule in [protocol.md](protocol.md); cases that begin with T are bugs that were found in other libraries.
The marks of an adapter are those over %s, in this order:
✓ passes, w is waived (below), – does not apply to the store, · did not run.
Over etcd+redis, response bodies of more than 64 bytes are in Redis, unless the case has limits of its own.
Over both rows of etcd, Fiber v2 runs on the fasthttp of v3.

`

const sheetStores = `
## Stores

%d cases, which run on every store in every supported deployment.

`
