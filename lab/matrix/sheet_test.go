package matrix

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

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
		fmt.Fprintf(&b, "| %s | %s%s |\n", c.ID, c.Rule, inBrackets(c.needs.String()))
	}
	fmt.Fprintf(&b, sheetAdapters, len(adaptertest.Cases()))
	for _, c := range adaptertest.Cases() {
		fmt.Fprintf(&b, "| %s | %s%s |\n", c.ID, c.Rule, inBrackets(strings.TrimPrefix(c.Source, "profile")))
	}
	b.WriteString("\n### Waivers\n\nA waived case runs, and the build fails once it passes.\n\n")
	for _, w := range testapp.FastHTTPWaivers {
		fmt.Fprintf(&b, "- %s, fiber, fiber3: %s\n", w.Case, w.Reason)
	}
	fmt.Fprintf(&b, sheetStores, len(storetest.Cases()))
	for _, group := range grouped(storetest.Cases()) {
		fmt.Fprintf(&b, "| %s | %s |\n", group.name, strings.Join(group.cases, ", "))
	}
	return b.String()
}

// inBrackets returns a text to append to a rule, if there is one.
func inBrackets(text string) string {
	if text = strings.TrimPrefix(text, ", "); text == "" {
		return ""
	}
	return " (" + text + ")"
}

type caseGroup struct {
	name  string
	cases []string
}

// grouped returns the cases by the first word of their IDs, with the rest of these.
func grouped(all []conformance.Case) (groups []caseGroup) {
	at := map[string]int{}
	for _, c := range all {
		name, rest, found := strings.Cut(c.ID, "-")
		if !found {
			rest = "itself"
		}
		i, known := at[name]
		if !known {
			i, groups = len(groups), append(groups, caseGroup{name: name})
			at[name] = i
		}
		groups[i].cases = append(groups[i].cases, rest)
	}
	return groups
}

// String says which stores have it. It is empty if all do.
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
	return strings.Join(all, ", ")
}

const sheetHead = `# What is tested, on what

A test writes this page from the suites (` + "`go generate ./lab/matrix`" + `), and fails when it is not current.

## Every adapter over every store

Each of these cases passes on %s over each store that it applies to, through processes of the test server: %s.
Over etcd, Fiber v2 runs on the fasthttp of v3.

| case | rule (where not for every store: for which) |
|---|---|
`

const sheetAdapters = `
## Adapters

%d cases, which run beside each adapter over memory, on a real listener with native handlers. A case is named after its rule in [protocol.md](protocol.md); its source is in brackets, where it is not ours. T cases are bugs that were found in other libraries.

| case | rule |
|---|---|
`

const sheetStores = `
## Stores

%d cases, which run on every store in every supported deployment.
` + "`conformance/storetest`" + ` has the rule of each and where it is promised; a case that fails prints both.

| | cases |
|---|---|
`
