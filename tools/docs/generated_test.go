package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/reprise-go/reprise/tools/internal/tree"
)

const options = `package reprise

// Config has every kind of field.
type Config struct {
	// Lease is how long an attempt may go without renewal. More is in the guide. Default
	// 30 s, at least 1 s.
	Lease int

	// Table is the table; empty means reprise_records.
	Table string

	// Ask, if not nil, is called for a|b. See [Config.Lease] and [os.File].Name.
	Ask func()

	// Off turns it off. By default [Config].Ask does so.
	Off bool

	Size int // in bytes; default 1,000, with a bound

	hidden int
}
`

const optionsTable = "<!-- options: core.Config -->\n\n" +
	"| `reprise.Config` | default | |\n|---|---|---|\n" +
	"| `Lease` | 30 s, at least 1 s | how long an attempt may go without renewal |\n" +
	"| `Table` | reprise_records | the table |\n" +
	"| `Ask` | none | called for a\\|b |\n" +
	"| `Off` | `Config.Ask` does so | turns it off |\n" +
	"| `Size` | 1,000 | in bytes, with a bound |\n" +
	"\n<!-- end -->"

func TestATableOfOptionsIsMadeFromTheComments(t *testing.T) {
	t.Parallel()
	dir := tree.Small(t, map[string]string{"core/config.go": options})
	got, err := generate(dir, "before\n<!-- options: core.Config -->\nold\n<!-- end -->\nafter\n")
	if err != nil {
		t.Fatal(err)
	}
	if want := "before\n" + optionsTable + "\nafter\n"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestATableThatCannotBeMadeIsReported(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ of, code, want string }{
		{"core.Config", "package core\n\ntype Config struct{ Lease int }\n", "options: core.Config.Lease has no comment"},
		{"core.Gone", options, "options: there is no struct Gone in core"},
		{"Config", options, `options: "Config" is not a struct in a package`},
		{"gone.Config", options, "no Go files in "},
	} {
		t.Run(row.want, func(t *testing.T) {
			t.Parallel()
			dir := tree.Small(t, map[string]string{"core/config.go": row.code})
			if _, err := generate(dir, "<!-- options: "+row.of+" -->\n<!-- end -->"); err == nil || !strings.HasPrefix(err.Error(), row.want) {
				t.Errorf("%v, want %q", err, row.want)
			}
		})
	}
}

func TestAPageThatIsOldIsReportedAndWritten(t *testing.T) {
	t.Parallel()
	dir := tree.Small(t, map[string]string{
		"core/config.go":        options,
		"docs/reference/new.md": "# New\n\n" + optionsTable + "\n",
		"docs/reference/old.md": "# Old\n\n" + strings.Replace(optionsTable, "30 s", "20 s", 1) + "\n",
	})
	for _, step := range []struct {
		write bool
		stale []string
	}{
		{false, []string{"docs/reference/old.md"}},
		{true, nil},
		{false, nil},
	} {
		stale, err := pages(dir, step.write)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(stale, step.stale) {
			t.Errorf("with write=%t %q are stale, want %q", step.write, stale, step.stale)
		}
	}
	if page, err := os.ReadFile(filepath.Join(dir, "docs", "reference", "old.md")); err != nil || string(page) != "# Old\n\n"+optionsTable+"\n" {
		t.Errorf("%v, %q", err, page)
	}
}
