package matrix

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/reprise-go/reprise/conformance"
	"github.com/reprise-go/reprise/conformance/adaptertest"
	"github.com/reprise-go/reprise/conformance/adaptertest/testapp"
	"github.com/reprise-go/reprise/conformance/storetest"
)

var updateDocs = flag.Bool("update-docs", false, "write docs/engineering/conformance.md instead of comparing it")

//go:generate go test -count=1 -run ^TestSheet$DOLLAR . -update-docs

// The sheet has what the suites run. A case that fails where it applies, and one that
// passes in spite of its waiver, fails its suite.
func TestSheet(t *testing.T) {
	t.Parallel()
	file := filepath.Join("..", "..", "docs", "engineering", "conformance.md")
	want := sheet()
	if *updateDocs {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(file); err != nil || string(got) != want {
		t.Errorf("%s is not current (%v): run go generate ./lab/matrix", file, err)
	}
}

func sheet() string {
	var b strings.Builder
	var counts []string
	for i := range Stores {
		n := 0
		for _, c := range cases {
			if Stores[i].has(c.needs) {
				n++
			}
		}
		counts = append(counts, fmt.Sprintf("%s %d", Stores[i].Name, n))
	}
	fmt.Fprintf(&b, sheetHead, strings.Join(Adapters, ", "), strings.Join(counts, ", "))
	for _, c := range cases {
		fmt.Fprintf(&b, "* **%s** %s%s\n", c.ID, c.Rule, c.needs)
	}
	fmt.Fprintf(&b, sheetAdapters, len(adaptertest.Cases()))
	b.WriteString(strings.Join(grouped(adaptertest.Cases()), "; ") + ".\n\n")
	for _, c := range adaptertest.Cases() {
		if strings.HasPrefix(c.ID, "T") {
			fmt.Fprintf(&b, "* **%s** %s\n", c.ID, c.Rule)
		}
	}
	b.WriteString("\n### Waivers\n\nA waived case runs, and the build fails once it passes.\n\n")
	for _, w := range testapp.FastHTTPWaivers {
		fmt.Fprintf(&b, "- %s, fiber, fiber3: %s\n", w.Case, w.Reason)
	}
	fmt.Fprintf(&b, sheetStores, len(storetest.Cases()))
	b.WriteString(strings.Join(grouped(storetest.Cases()), "; ") + ".\n")
	return b.String()
}

// grouping splits the ID of a case after its rule, or after its first word.
var grouping = regexp.MustCompile(`^(R\d+|[a-z]+)-?(.*)$`)

// grouped returns the beginnings of the IDs, each with all their ends.
func grouped(all []conformance.Case) (lines []string) {
	ends := map[string][]string{}
	var order []string
	for _, c := range all {
		if m := grouping.FindStringSubmatch(c.ID); m != nil {
			if ends[m[1]] == nil {
				order = append(order, m[1])
			}
			ends[m[1]] = append(ends[m[1]], cmp.Or(m[2], "itself"))
		}
	}
	for _, begin := range order {
		lines = append(lines, fmt.Sprintf("**%s** %s", begin, strings.Join(ends[begin], ", ")))
	}
	return lines
}

// String says in brackets which stores have it. It is empty if all do.
func (n need) String() string {
	var all []string
	for _, of := range []struct {
		need need
		text string
	}{{processes, "stores that processes share"}, {streams, "responses that need not wait for a commit"}, {atomic, "effects in the transaction"}, {link, "stores behind a network"}} {
		if n&of.need != 0 {
			all = append(all, of.text)
		}
	}
	if len(all) == 0 {
		return ""
	}
	return " (" + strings.Join(all, ", ") + ")"
}

const sheetHead = `# What is tested, on what

A test writes this page from the suites (` + "`go generate ./lab/matrix`" + `), and fails when it is not current.

## Every adapter over every store

Each of these cases passes on %s over each store that it applies to, through processes of the test server: %s.
Over etcd, Fiber v2 runs on the fasthttp of v3.
The brackets say which stores a case is for, if not for all.

`

const sheetAdapters = `
## Adapters

%d cases, which run beside each adapter over memory, on a real listener with native handlers: R6a is case a of the rule R6 in [protocol.md](protocol.md). T cases have none: most are bugs that were found in other libraries.
` + "`conformance/adaptertest`" + ` has what each of them wants and why; a case that fails prints both.

`

const sheetStores = `
## Stores

%d cases, which run on every store in every supported deployment: claim-first is the first of them.
` + "`conformance/storetest`" + ` has the rule of each and where it is promised; a case that fails prints both.

`
