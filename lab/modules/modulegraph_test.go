package modules

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const root = "github.com/reprise-go/reprise/"

// published are the modules that users require, and what each of them may bring along: the framework or the client, and what those need
// themselves.
var published = map[string][]string{
	"core":             {"github.com/dunglas/httpsfv"},
	"store/redis":      {root + "core", "github.com/redis/go-redis/v9"},
	"store/postgres":   {root + "core", "github.com/jackc/pgx/v5"},
	"adapters/nethttp": {root + "core"},
	"adapters/gin":     {root + "core", "github.com/gin-gonic/gin"},
	"adapters/echo":    {root + "core", "github.com/labstack/echo/v4"},
	"adapters/fiber":   {root + "core", "github.com/gofiber/fiber/v2", "github.com/valyala/fasthttp"}, // on which Fiber stands
	"conformance":      {root + "core"},
}

// TestModuleGraphHasTheFrameworkAndNothingElse publishes every module to a proxy in a temporary folder, requires each of them from an
// empty program, and looks at what came along.
func TestModuleGraphHasTheFrameworkAndNothingElse(t *testing.T) {
	t.Parallel()
	p := newProxy(t)
	for _, folder := range slices.Sorted(maps.Keys(published)) {
		p.publish(t, folder)
	}
	for folder, roots := range published {
		t.Run(strings.ReplaceAll(folder, "/", "-"), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			p.run(t, dir, "mod", "init", "example.test/consumer")
			p.run(t, dir, "get", root+folder+"@"+p.version)
			program := fmt.Sprintf("package main\n\nimport _ %q\n\nfunc main() {}\n", root+folder)
			if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(program), 0o600); err != nil {
				t.Fatal(err)
			}
			p.run(t, dir, "build", "-o", os.DevNull, ".")

			g := parseGraph(p.run(t, dir, "mod", "graph"))
			direct := slices.DeleteFunc(slices.Clone(g.requires[root+folder]), func(m string) bool { return p.indirect[folder][m] })
			if slices.Sort(direct); !slices.Equal(direct, slices.Sorted(slices.Values(roots))) {
				t.Errorf("%s requires %v, want %v", folder, direct, roots)
			}
			if found := g.strangers("example.test/consumer", root+folder, roots); len(found) > 0 {
				t.Errorf("%s brings along what neither of %v needs: %v", folder, roots, found)
			}
		})
	}
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

// strangers returns the modules that the consumer of a module gets without any of the roots needing them.
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
