//go:build unix

package commands_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/reprise-go/reprise/tools/internal/markdown"
	"github.com/reprise-go/reprise/tools/internal/tree"
)

// notRun are the blocks that no test can run, by their files.
var notRun = []string{
	"caddy/reprise.go",           // a line of a Caddyfile
	"cmd/reprise/README.md",      // go install of a release
	"cmd/reprise/README.md",      // resolve asks a person
	"cmd/reprise/README.md",      // resolve of the reader's record
	"cmd/reprise/README.md",      // forget of the reader's record
	"docs/engineering/growth.md", // lab/postgres runs it in a schema of its own
	"docs/guides/judge.md",       // an endpoint in Express
	"docs/guides/judge.md",       // in FastAPI
	"docs/guides/judge.md",       // in Rails
	"docs/guides/judge.md",       // in Spring
	"docs/guides/judge.md",       // and in Express, with programs
	"docs/guides/proxy.md",       // the reader's service
	"docs/operate/etcd.md",       // users of the reader's cluster
	"docs/operate/postgres.md",   // SQL with the reader's roles
	"docs/operate/postgres.md",   // and the policies of these
	"docs/operate/redis.md",      // ACL with the reader's password
	"examples/etcd/main.go",      // lab/etcd runs it on a cluster
	"lab/bench/main.go",          // measures for minutes
}

// elsewhere are the targets that take minutes, and those of the examples, whose own tests
// run what they run. They have to exist.
var elsewhere = []string{"make", "make test", "make check", "make contract", "make demo", "make console", "make bench/peers", "make judge/peers", "make wire"}

func TestEveryCommandRuns(t *testing.T) {
	t.Parallel()
	w := newClone(t)
	found := find(t, w.clone)
	bare, full := w.withoutServers(t), w.withServers(t)
	for name, machine := range map[string]*world{"without servers": bare, "with servers": full} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, b := range found {
				if b.because != "" || !slices.Contains(shells, b.language) {
					continue
				}
				if lines, _ := b.commands(); len(lines) == 0 {
					continue
				}
				t.Run(b.at, func(t *testing.T) {
					t.Parallel()
					switch {
					case b.long && testing.Short():
						t.Skip("it takes long")
					case machine == full && slices.ContainsFunc(b.needs, func(name string) bool { return !full.has[name] }):
						t.Skipf("it needs %s", b.needs)
					}
					machine.run(t, b)
				})
			}
		})
	}
}

// find returns the blocks of a work tree.
func find(t *testing.T, root string) []block {
	t.Helper()
	found, wrong := read(root, committed(t, root, "*.md", "*.go"))
	if len(wrong) > 0 {
		t.Errorf("%s", strings.Join(wrong, "\n"))
	}
	return found
}

// committed returns the files of a work tree that match.
func committed(t *testing.T, root string, patterns ...string) []string {
	t.Helper()
	files, ok := tree.Run(t, root, nil, "git", append([]string{"ls-files"}, patterns...)...)
	if !ok {
		t.Fatal(files)
	}
	return strings.Fields(files)
}

// A block that fails, or prints something else, fails the test.
func TestABlockThatFailsIsReported(t *testing.T) {
	t.Parallel()
	m := &world{clone: t.TempDir(), env: os.Environ(), place: strings.NewReplacer(), serving: new(sync.Mutex), port: portOf(t, freeAddr(t))}
	for name, b := range map[string]block{
		"no command":         {text: "no-such-command"},
		"not the last line":  {text: "false\ntrue"},
		"within a pipe":      {text: "false | true"},
		"a server that ends": {text: "true &\ntrue", how: how{until: []string{"8080"}}},
		"what a server says": {text: "echo no\ntrue", how: how{until: []string{`"yes"`}}},
	} {
		if out, err := m.try(t, b); err == nil {
			t.Errorf("%s: no failure, only %q", name, out)
		}
	}
}

// Commands in sentences name existing folders.
func TestCommandsInSentencesNamePackages(t *testing.T) {
	t.Parallel()
	root := tree.Root(t)
	for _, file := range committed(t, root, "*.md") {
		text, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		for _, span := range markdown.Read(file, string(text)).Code {
			for word := range strings.FieldsSeq(span.Text) {
				folder, local := strings.CutPrefix(strings.TrimSuffix(word, "/..."), "./")
				if !local || !strings.HasPrefix(span.Text, "go ") {
					continue
				}
				if _, err := os.Stat(filepath.Join(root, folder)); err != nil {
					t.Errorf("%s:%d: %s: %v", file, span.Line, span.Text, err)
				}
			}
		}
	}
}

func TestWhatIsNotRunIsListed(t *testing.T) {
	t.Parallel()
	var left []string
	for _, b := range find(t, tree.Root(t)) {
		if b.because != "" {
			file, _, _ := strings.Cut(b.at, ":")
			left = append(left, file)
			t.Logf("%s is not run: %s", b.at, b.because)
		}
	}
	if slices.Sort(left); !slices.Equal(left, notRun) {
		t.Errorf("not run are blocks of %q, want those of the list %q", left, notRun)
	}
}

func TestTargetsThatTakeMinutesExist(t *testing.T) {
	t.Parallel()
	root := tree.Root(t)
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range find(t, root) {
		_, makes := b.commands()
		for _, call := range makes {
			words := strings.Fields(call)
			if len(words) > 2 {
				words = words[:2]
			}
			if !slices.Contains(elsewhere, strings.Join(words, " ")) {
				t.Errorf("%s: no test runs %s: add it to elsewhere if it takes minutes", b.at, call)
			}
			if len(words) > 1 && !regexp.MustCompile(`(?m)^`+regexp.QuoteMeta(words[1])+`:`).Match(makefile) {
				t.Errorf("%s: make has no target %s", b.at, words[1])
			}
		}
	}
}

// A block that the test would not understand fails it, instead of passing by.
func TestUnknownBlocksAreReported(t *testing.T) {
	t.Parallel()
	for page, want := range map[string]string{
		"```\nrm x\n```\n":                                `the language ""`,
		"```fish\nrm x\n```\n":                            `the language "fish"`,
		"<!-- run it somehow -->\n```sh\nx\n```\n":        `"run it somehow": no such clause`,
		"<!-- needs mysql -->\n```sh\nx\n```\n":           `"needs mysql": no such clause`,
		"<!-- prints x -->\n```sh\nx\n```\n":              "invalid syntax",
		"<!-- background 8080 -->\n```sh\nx\n```\n":       "no such clause",
		"<!-- not run because -->\n```sql\nSELECT\n```\n": "no such clause",
	} {
		dir := t.TempDir()
		tree.Write(t, dir, "page.md", page)
		if _, wrong := read(dir, []string{"page.md"}); len(wrong) != 1 || !strings.Contains(wrong[0], want) {
			t.Errorf("%q: %q, want %q", page, wrong, want)
		}
	}
}
