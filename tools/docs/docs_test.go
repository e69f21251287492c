package main

import (
	"slices"
	"testing"

	"github.com/reprise-go/reprise/tools/internal/tree"
)

const (
	goodGo = `// Package reprise is [Config] and [New], and not an [os.File].
package reprise

import (
	"os"

	redis "github.com/redis/go-redis/v9"
)

// Config has a [Config.Lease].
type Config struct {
	Lease  int // how long
	Limits Bounds // bounds
}

// Bounds are in [Config.Limits].
type Bounds struct{ Size int }

// New makes one; it is told of -max-run.
func New(Config) *os.File { return flag("max-run", redis.NewClient) }

// Store has [Store.Claim] from the records that it embeds.
type Store struct{ *records }

type records struct{}

func (*records) Claim() {}

const variable = "REPRISE_TEST_THING"
`
	goodPage = "# A page\n\n`make help`, `make race MODULES=core`, `core/core.go`, `core`, `net/http`, `docs/page.md`, `page.md`, `core.go`, `core/v0.3.0`,\n" +
		"`reprise.New`, `reprise.Config.Lease`, `Config.Lease`, `New(…)`, `http.TimeoutHandler`, `redis.NewClient`, `Store.Claim`, `Limits.Size`, `SELECT`,\n" +
		"`TestThing`, `TestTh…`, `REPRISE_TEST_THING=1`, `adapters/<framework>`, `reprise serve --max-run 1m`, `redis-server --appendonly`.\n\n```go\nreprise.Gone()\n```\n"
)

// Each row adds a file to a tree without a mistake.
func TestWhatIsNotThereIsReported(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ file, text, want string }{
		{"docs/fine.md", "Nothing.", ""},
		{"docs/bad.md", "Run `make everything`.", "docs/bad.md:1: make has no target everything"},
		{"docs/bad.md", "In `core/gone.go`.", "docs/bad.md:1: there is no core/gone.go"},
		{"docs/bad.md", "In `gone.md`.", "docs/bad.md:1: there is no gone.md"},
		{"docs/bad.md", "Set `REPRISE_TEST_NOTHING`.", "docs/bad.md:1: nothing reads REPRISE_TEST_NOTHING"},
		{"docs/bad.md", "Run `reprise serve --min-run 1m`.", "docs/bad.md:1: no program has the flag min-run"},
		{"docs/bad.md", "With `-min-run`.", "docs/bad.md:1: no program has the flag min-run"},
		{"docs/bad.md", "Shown by `TestNothing`.", "docs/bad.md:1: no code has the name TestNothing"},
		{"docs/bad.md", "Shown by `TestNo…`.", "docs/bad.md:1: no code has the name TestNo"},
		{"docs/bad.md", "\nCall `reprise.Do`.", "docs/bad.md:2: there is no reprise.Do"},
		{"docs/bad.md", "Call `stored.Open`.", "docs/bad.md:1: no code imports a package for stored.Open"},
		{"docs/bad.md", "Set `reprise.Config.Gone`.", "docs/bad.md:1: no code has the name Gone"},
		{"docs/bad.md", "Set `Config.Gone`.", "docs/bad.md:1: no code has the name Gone"},
		{"docs/bad.md", "Call `Gone(x)`.", "docs/bad.md:1: no code has the name Gone"},
		{"docs/README.md", "[page](page.md)", ""},
		{"docs/README.md", "# Index", "docs/README.md: the index lacks page.md"},
		{"docs/reference/old.md", "<!-- options: core.Config -->\n<!-- end -->", "docs/reference/old.md: its generated part is old: run go generate ./docs in tools"},
		{"core/bad.go", "package reprise\n\n// Bad is a [Gone].\ntype Bad int", "core/bad.go:3: no code has the name Gone"},
		{"core/bad.go", "package reprise\n\n// Bad is a\n// [Config.Gone].\ntype Bad int", "core/bad.go:4: no code has the name Gone"},
		{"core/bad_test.go", "package reprise\n\nvar x int // or reprise.Do", "core/bad_test.go:3: there is no reprise.Do"},
	} {
		t.Run(row.want, func(t *testing.T) {
			t.Parallel()
			dir := tree.Small(t, map[string]string{
				"docs/page.md": goodPage, "core/core.go": goodGo, "core/core_test.go": "package reprise\n\nimport \"testing\"\n\nfunc TestThing(*testing.T) {}\n",
			})
			tree.Write(t, dir, row.file, row.text+"\n")
			var want []string
			if row.want != "" {
				want = []string{row.want}
			}
			if bad, err := check(dir); err != nil || !slices.Equal(bad, want) {
				t.Errorf("reported %q, %v, want %q alone", bad, err, row.want)
			}
		})
	}
}
