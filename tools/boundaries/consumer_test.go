package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/reprise-go/reprise/tools/internal/tree"
)

// TestModuleGraphHasTheFrameworkAndNothingElse publishes every module to a proxy in a
// temporary folder, requires each of them from an empty program, and looks at what came
// along.
func TestModuleGraphHasTheFrameworkAndNothingElse(t *testing.T) {
	t.Parallel()
	served, modules, pkgs, err := load(t.Context(), tree.Root(t))
	if err != nil {
		t.Fatal(err)
	}
	modules = slices.DeleteFunc(modules, func(m module) bool {
		r, known := roomOf(m.path)
		return !known || r.free || strings.HasPrefix(m.path, "cmd/") // a program is imported by nobody
	})
	p := newProxy(t, modules)
	for _, m := range modules {
		p.publish(t, m.path)
	}
	for _, m := range modules {
		t.Run(strings.ReplaceAll(m.path, "/", "-"), func(t *testing.T) {
			t.Parallel()
			if slices.Contains(served.NotAlone, m.path) {
				t.Skip(served.Summary())
			}
			dir := t.TempDir()
			p.run(t, dir, "mod", "init", "example.test/consumer")
			if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(consumer(m, pkgs)), 0o600); err != nil {
				t.Fatal(err)
			}
			p.run(t, dir, "get", root+m.path+"@"+p.version)
			p.run(t, dir, "build", "-o", os.DevNull, ".")

			g := parseGraph(p.run(t, dir, "mod", "graph"))
			if found := g.strangers("example.test/consumer", root+m.path, m.direct); len(found) > 0 {
				t.Errorf("%s brings along what none of %v needs: %v", m.path, m.direct, found)
			}
		})
	}
}

// consumer returns a program that imports every package of a module that it can.
func consumer(m module, pkgs []pkg) string {
	var b strings.Builder
	b.WriteString("package main\n\n")
	for _, p := range pkgs {
		if p.module == m.path && len(p.imports) > 0 && !strings.Contains("/"+p.path+"/", "/internal/") {
			fmt.Fprintf(&b, "import _ %q\n", root+p.path)
		}
	}
	b.WriteString("\nfunc main() {}\n")
	return b.String()
}

// The check above finds a module that nothing but the go.mod itself asks for.
func TestModuleGraphCheckFindsStrangers(t *testing.T) {
	t.Parallel()
	const graph = `example.test/consumer a.test/adapter@v1.0.0
example.test/consumer b.test/framework@v1.2.0
example.test/consumer c.test/needed@v1.0.0
example.test/consumer d.test/testing@v1.0.0
example.test/consumer go@1.26
a.test/adapter@v1.0.0 b.test/framework@v1.1.0
a.test/adapter@v1.0.0 c.test/needed@v1.0.0
a.test/adapter@v1.0.0 d.test/testing@v1.0.0
b.test/framework@v1.2.0 c.test/needed@v0.9.0
d.test/testing@v1.0.0 e.test/more@v1.0.0
go@1.26 toolchain@go1.26
`
	got := parseGraph(graph).strangers("example.test/consumer", "a.test/adapter", []string{"b.test/framework"})
	if want := []string{"d.test/testing", "e.test/more"}; !slices.Equal(got, want) {
		t.Errorf("strangers are %v, want %v", got, want)
	}
}

// graph is what requires what, by paths without versions.
type graph struct{ requires map[string][]string }

func parseGraph(text string) graph {
	g := graph{make(map[string][]string)}
	for line := range strings.Lines(text) {
		from, to, _ := strings.Cut(strings.TrimSpace(line), " ")
		from, _, _ = strings.Cut(from, "@")
		to, _, _ = strings.Cut(to, "@")
		if to != "go" && to != "toolchain" && !slices.Contains(g.requires[from], to) {
			g.requires[from] = append(g.requires[from], to)
		}
	}
	return g
}

// strangers returns the modules that the consumer of a module gets without any of the
// roots needing them.
func (g graph) strangers(consumer, module string, roots []string) []string {
	known := map[string]bool{consumer: true, module: true, "go": true}
	for next := slices.Clone(roots); len(next) > 0; {
		m := next[0]
		next = next[1:]
		if !known[m] {
			known[m] = true
			next = append(next, g.requires[m]...)
		}
	}
	var found []string
	for from, list := range g.requires {
		for _, m := range append([]string{from}, list...) {
			if !known[m] {
				known[m] = true
				found = append(found, m)
			}
		}
	}
	slices.Sort(found)
	return found
}
