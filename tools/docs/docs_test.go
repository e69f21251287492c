package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/reprise-go/reprise/tools/internal/tree"
)

const (
	goodGo = `// Package reprise is [Config] and [New].
//
//	engine := reprise.New(reprise.Config{Lease: 1})
package reprise

import "os"

// Config has a [Config.Lease].
type Config struct{ Lease int }

// New makes one of [os.File].
func New(Config) *os.File { return nil }

// Store has [Store.Claim] from what it embeds.
type Store struct {
	*records

	Limits Bounds
}

// Bounds are in Store.Limits.
type Bounds struct{ Size int }

type records struct{}

func (*records) Claim() {}

const variable = "REPRISE_TEST_THING"
`
	goodPage = "# A page\n\n## Its *second* part\n\n" +
		"[here](#its-second-part), [there](../README.md#readme), [a folder](../core), [elsewhere](https://example.org/none).\n\n" +
		"`blob.OpenBucket`, `connect.WithInterceptors`, `gocloud.dev/blob`, `make help`, `make race MODULES=core`, `core/core.go`, `core`, `net/http`, `docs/page.md`, `page.md`, `.cache/made/page.html`, `application/json`,\n" +
		"`reprise.New`, `reprise.Config.Lease`, `Config.Lease`, `Lease`, `New(…)`, `http.TimeoutHandler`, `redis.NewClient`, `sql.DB`, `c.Anything`, `Store.Claim`, `Limits.Size`, `SELECT`, `R12`,\n" +
		"`TestThing`, `TestTh…`, `REPRISE_TEST_THING=1`, `github.com/reprise-go/reprise/core`, `core/v0.3.0`, `adapters/<framework>`.\n\n" +
		"| `reprise.Config` | |\n|---|---|\n| `Lease` | how long |\n\n" +
		"```go\nc := reprise.Config{Lease: 1}\nif !ok { … }\nreprise.New(c)\n```\n\n" +
		"```\nmake            what there is\nmake help       help, with nothing else\n```\n"
)

func small(t *testing.T) string {
	t.Helper()
	return tree.Small(t, map[string]string{
		"README.md":                "# Readme\n",
		"docs/page.md":             goodPage,
		"docs/engineering/page.md": "# A page\n",
		"core/go.mod":              "module github.com/reprise-go/reprise/core\n\nrequire gocloud.dev v0.45.0\n",
		"core/core.go":             goodGo,
		// Packages with the names of foreign ones, which a page cannot mean.
		"cmd/internal/connect/connect.go": "package connect\n\n// Open opens [connect.Open] and [connect.Interceptor].\nfunc Open() {}\n",
		"lab/blob/doc.go":                 "// Package blob tests [blob.Bucket]:\n//\n//\tblob.OpenBucket(ctx, url)\npackage blob\n",

		"core/core_test.go": "package reprise\n\nimport \"testing\"\n\nfunc TestThing(*testing.T) {}\n",
	})
}

func TestWhatIsThereIsResolved(t *testing.T) {
	t.Parallel()
	bad, names, err := check(small(t))
	if err != nil {
		t.Fatal(err)
	}
	if len(bad) > 0 {
		t.Errorf("unresolved: %q", bad)
	}
	if want := 28; names < want {
		t.Errorf("%d names were looked up, want %d or more", names, want)
	}
}

func TestWhatIsNotThereIsReported(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ file, text, want string }{
		{"docs/guides/long.md", strings.Repeat("word ", mostWords), "docs: the pages for users have 30001 words, 30000 at most: make one shorter"},
		{"docs/bad.md", "[gone](gone.md)", "docs/bad.md:1: the link gone.md leads nowhere"},
		{"docs/bad.md", "[gone](page.md#third)", "docs/bad.md:1: no heading of docs/page.md has the anchor #third"},
		{"docs/bad.md", "Run `make everything` now.", "docs/bad.md:1: make has no target everything"},
		{"docs/bad.md", "```sh\nmake help\nmake everything   # all\n```", "docs/bad.md:3: make has no target everything"},
		{"docs/bad.md", "In `core/gone.go`.", "docs/bad.md:1: there is no core/gone.go"},
		{"docs/bad.md", "In `test/servers`.", "docs/bad.md:1: there is no test/servers"},
		{"docs/bad.md", "In `gone.md`.", "docs/bad.md:1: there is no gone.md"},
		{"docs/bad.md", "Set `REPRISE_TEST_NOTHING`.", "docs/bad.md:1: nothing reads REPRISE_TEST_NOTHING"},
		{"docs/bad.md", "Shown by `TestNothing`.", "docs/bad.md:1: there is no test TestNothing"},
		{"docs/bad.md", "Shown by `TestNo…`.", "docs/bad.md:1: there is no test TestNo…"},
		{"docs/bad.md", "Uses `github.com/nobody/nothing`.", "docs/bad.md:1: no go.mod requires github.com/nobody/nothing"},
		{"docs/bad.md", "Call `reprise.Do`.", "docs/bad.md:1: there is no reprise.Do"},
		{"docs/bad.md", "Call `reprise.Config.Gone`.", "docs/bad.md:1: there is no reprise.Config.Gone"},
		{"docs/bad.md", "Call `Config.Gone`.", "docs/bad.md:1: no type Config has the member Gone"},
		{"docs/bad.md", "Call `Limits.Gone`.", "docs/bad.md:1: no type Limits has the member Gone"},
		{"docs/bad.md", "Call `Gone(x)`.", "docs/bad.md:1: no package has the name Gone"},
		{"docs/bad.md", "Call `http.Gone2`.", "docs/bad.md:1: there is no http.Gone2"},
		{"docs/bad.md", "```go\nreprise.Do()\n```", "docs/bad.md:2: there is no reprise.Do"},
		{"docs/bad.md", "```go\nreprise.New(reprise.Config{Gone: 1})\n```", "docs/bad.md:2: reprise.Config has no field Gone"},
		{"docs/README.md", "# Index", "docs/README.md:1: the index lacks page.md"},
		{"docs/engineering/README.md", "# Index", "docs/engineering/README.md:1: the index lacks page.md"},
		{"docs/bad.md", "```go\nnot Go\n```", "docs/bad.md:2: the code block is not Go"},
		{"docs/bad.md", "| `reprise.Config` | |\n|---|---|\n| `Lease`, `New` | |", "docs/bad.md:3: reprise.Config has no field New"},
		{"docs/bad.md", "| `reprise.Config` | |\n|---|---|\n| x | `Lease` |", "docs/bad.md:1: the table of reprise.Config lacks Lease"},
		{"core/bad.go", "// Bad is a [Gone].\npackage reprise", "core/bad.go:1: the doc link [Gone] leads nowhere"},
		{"core/bad.go", "package reprise\n\n// Bad is a [Config.Gone].\ntype Bad int", "core/bad.go:3: the doc link [Config.Gone] leads nowhere"},
		{"core/bad.go", "// Bad is:\n//\n//\treprise.Do()\npackage reprise", "core/bad.go:3: there is no reprise.Do"},
		{"core/bad_test.go", "package reprise\n\nvar x int // or reprise.Do", "core/bad_test.go:3: there is no reprise.Do"},
	} {
		t.Run(row.want, func(t *testing.T) {
			t.Parallel()
			dir := small(t)
			tree.Write(t, dir, row.file, row.text+"\n")
			bad, _, err := check(dir)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(bad, []string{row.want}) {
				t.Errorf("reported %q, want %q alone", bad, row.want)
			}
		})
	}
}

func TestTheTargetFails(t *testing.T) {
	t.Parallel()
	dir := tree.Copy(t)
	tree.Write(t, dir, "core/bad.md", "Call `reprise.Nothing`.\n")
	out, ok := tree.Run(t, dir, nil, "make", "docs")
	if ok || !strings.Contains(out, "core/bad.md:1: there is no reprise.Nothing") {
		t.Errorf("make docs passed=%t, want a failure that names the page:\n%s", ok, out)
	}
}
