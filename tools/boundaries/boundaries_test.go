package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/reprise-go/reprise/tools/internal/tree"
)

// Each violation goes into a copy of the project, in a package of its own, and must be
// found there and nowhere before.
func TestEveryInjectedViolationIsFound(t *testing.T) {
	t.Parallel()
	dir := tree.Copy(t)
	before := violations(t, dir)

	injected := []struct{ file, source, want string }{
		{
			"core/internal/injected/http.go",
			`import _ "net/http"`,
			"core/internal/injected: needs net/http, directly or through others, which the room core may not",
		},
		{
			"core/internal/hidden/expvar.go",
			`import _ "expvar"`,
			"core/internal/hidden: needs net/http, directly or through others, which the room core may not",
		},
		{
			"core/internal/tagged/elsewhere_plan9.go",
			`import _ "testing"`,
			"core/internal/tagged: needs testing, directly or through others, which the room core may not",
		},
		{
			"core/protocol/injected/http.go",
			`import _ "net/http"`,
			"core/protocol/injected: needs net/http, directly or through others, which the room core/protocol may not",
		},
		{
			"core/internal/parser/parser.go",
			`import _ "github.com/dunglas/httpsfv"`,
			"core/internal/parser: imports github.com/dunglas/httpsfv, which the room core may not",
		},
		{
			"adapters/nethttp/internal/injected/store.go",
			`import _ "github.com/reprise-go/reprise/core/memstore"`,
			"adapters/nethttp/internal/injected: imports github.com/reprise-go/reprise/core/memstore, which the room adapters/nethttp may not",
		},
		{
			"adapters/echo/internal/injected/gin_test.go",
			`import _ "github.com/gin-gonic/gin"`,
			"adapters/echo/internal/injected: its tests import github.com/gin-gonic/gin, which the tests of the room adapters/echo may not",
		},
		{
			"store/redis/internal/injected/protocol.go",
			`import _ "github.com/reprise-go/reprise/core/protocol"`,
			"store/redis/internal/injected: imports github.com/reprise-go/reprise/core/protocol, which the room store/redis may not",
		},
		{
			"store/postgres/internal/injected/suite_test.go",
			`import _ "github.com/reprise-go/reprise/conformance"`,
			"store/postgres/internal/injected: its tests import github.com/reprise-go/reprise/conformance, which the tests of the room store/postgres may not",
		},
		{
			"conformance/injected/client.go",
			`import _ "github.com/redis/go-redis/v9"`,
			"conformance/injected: imports github.com/redis/go-redis/v9, which the room conformance may not",
		},
	}
	injected = append(injected, []struct{ file, source, want string }{
		{
			"lab/matrix/injected/gin_test.go",
			`import _ "github.com/gin-gonic/gin"`,
			"lab/matrix/injected: imports gin, which only " + strings.Join(frameworkRooms, ", ") + " may",
		},
		{
			"examples/injected/two.go",
			"import (\n\t_ \"github.com/gin-gonic/gin\"\n\t_ \"github.com/reprise-go/reprise/adapters/fiber\"\n)",
			"examples/injected: imports fiber and gin: code outside tests takes one framework, so that one that is refused takes down only itself",
		},
	}...)
	for _, i := range injected {
		tree.Write(t, dir, i.file, "package injected\n\n"+i.source+"\n")
	}
	after := violations(t, dir)
	for _, i := range injected {
		if slices.Contains(before, i.want) {
			t.Errorf("found before it was injected: %s", i.want)
		}
		if !slices.Contains(after, i.want) {
			t.Errorf("not found: %s\nin:\n%s", i.want, strings.Join(after, "\n"))
		}
	}
}

func TestAModuleOutsideTheWorkspaceIsFound(t *testing.T) {
	t.Parallel()
	dir := tree.Copy(t)
	tree.Write(t, dir, "store/forgotten/go.mod", "module "+root+"store/forgotten\n\ngo 1.25.0\n")
	if _, _, _, err := load(t.Context(), dir); err == nil || !strings.Contains(err.Error(), "store/forgotten is not in go.work") {
		t.Errorf("load: %v, want that store/forgotten is not in go.work", err)
	}
}

func TestAnUnfinishedRunIsNotAPass(t *testing.T) {
	t.Parallel()
	if got := run(t.Context(), t.TempDir()); got != 2 {
		t.Errorf("run in a folder without go.work: exit code %d, want 2", got)
	}
}

func TestWhatAModuleMayRequire(t *testing.T) {
	t.Parallel()
	ok := func() module {
		return module{
			path:      "adapters/gin",
			goVersion: "1.25.0",
			direct:    []string{root + "core", "github.com/gin-gonic/gin"},
			replaced:  map[string]string{root + "core": "../../core"},
			graph:     []string{root + "adapters/gin", root + "core", "github.com/gin-gonic/gin", "go.uber.org/mock"},
		}
	}
	pkgs := []pkg{{
		path:    "adapters/gin",
		module:  "adapters/gin",
		imports: []string{root + "core/protocol", "github.com/gin-gonic/gin", "net/http"},
		tests:   []string{"testing", "github.com/stretchr/testify/assert"},
	}}

	for _, row := range []struct {
		name  string
		spoil func(*module)
		want  string // the end of the one violation; empty for none
	}{
		{"what its code imports", func(*module) {}, ""},
		{"only what its tests import", func(m *module) { m.direct = append(m.direct, "github.com/stretchr/testify") }, "requires github.com/stretchr/testify, which no code outside tests imports"},
		{"a name that only starts alike", func(m *module) { m.direct = append(m.direct, "github.com/gin-gonic/g") }, "requires github.com/gin-gonic/g, which no code outside tests imports"},
		{"a module of ours that it does not replace", func(m *module) { m.replaced = nil }, `replaces it by "", want the relative path of its folder`},
		{"a replacement that is not relative", func(m *module) { m.replaced[root+"core"] = "/core" }, `replaces it by "/core", want the relative path of its folder`},
		{"a replacement that points elsewhere", func(m *module) { m.replaced[root+"core"] = "../core" }, `replaces it by "../core", want the relative path of its folder`},
		{"another framework through others", func(m *module) { m.graph = append(m.graph, "github.com/labstack/echo/v4") }, "has github.com/labstack/echo/v4 in its module graph"},
		{"a newer language than it needs", func(m *module) { m.goVersion = "1.26.8" }, "go 1.26.8, want one of 1.25.0, 1.26.0"},
		{"a toolchain", func(m *module) { m.toolchain = "go1.26.8" }, "toolchain go1.26.8: consumers choose their own"},
		{"no row in the table", func(m *module) { m.path = "adapters/chi" }, "belongs to no room; give its folder a row in tools/boundaries/rules.go"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			m := ok()
			row.spoil(&m)
			got := checkModule(m, pkgs, nil)
			if row.want == "" {
				if len(got) > 0 {
					t.Errorf("violations %q, want none", got)
				}
				return
			}
			if len(got) != 1 || !strings.HasSuffix(got[0], row.want) {
				t.Errorf("violations %q, want one that ends in %q", got, row.want)
			}
		})
	}
}

func TestTheTestsRunOnTheOldest(t *testing.T) {
	t.Parallel()
	const framework = "github.com/gin-gonic/gin"
	adapter := module{path: "adapters/gin", goVersion: "1.25.0", direct: []string{framework}, versions: map[string]string{framework: "v1.10.0"}}
	for version, want := range map[string]int{"v1.10.0": 0, "v1.12.0": 1} {
		lab := module{path: "lab", goVersion: "1.26.0", versions: map[string]string{framework: version}}
		got := check([]module{adapter, lab}, []pkg{{path: "adapters/gin", module: "adapters/gin", imports: []string{framework}}})
		if len(got) != want || want == 1 && !strings.Contains(got[0], "lab/go.mod: requires "+framework+" v1.12.0, want v1.10.0") {
			t.Errorf("%s: violations %q, want %d that names both versions", version, got, want)
		}
	}
}

func TestAModuleThatTheNewestLeaveOutIsFound(t *testing.T) {
	t.Parallel()
	dir := tree.Copy(t)
	tree.Write(t, dir, newest, "go 1.26.0\n\nuse .\n")
	if _, _, _, err := load(t.Context(), dir); err == nil || !strings.Contains(err.Error(), "is in go.work and not in "+newest) {
		t.Errorf("load: %v, want a module that is not in %s", err, newest)
	}
}

func TestAPackageThatCannotBeLoadedIsAViolation(t *testing.T) {
	t.Parallel()
	got := check(nil, []pkg{{path: "core", broken: "no such package"}})
	if want := []string{"core: cannot be loaded: no such package"}; !slices.Equal(got, want) {
		t.Errorf("violations %q, want %q", got, want)
	}
}

func TestAFolderWithoutARowIsAViolation(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"helpers", "corelike", "adapters/chi"} {
		if got := check(nil, []pkg{{path: path}}); len(got) != 1 || !strings.Contains(got[0], "belongs to no room") {
			t.Errorf("%s: violations %q, want that it belongs to no room", path, got)
		}
	}
}

// violations checks the tree at dir.
func violations(t *testing.T, dir string) []string {
	t.Helper()
	_, modules, pkgs, err := load(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	return check(modules, pkgs)
}
