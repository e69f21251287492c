package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/reprise-go/reprise/tools/internal/tree"
)

// Each violation goes into a copy of the project, and must be found there and not before.
func TestEveryInjectedViolationIsFound(t *testing.T) {
	t.Parallel()
	dir := tree.Copy(t)
	folders, err := uses(t.Context(), dir, "go.work")
	if err != nil {
		t.Fatal(err)
	}
	violations := func() []string {
		bad, err := check(t.Context(), dir, dir+"/go.work", folders)
		if err != nil {
			t.Fatal(err)
		}
		return bad
	}
	if before := violations(); len(before) > 0 {
		t.Errorf("found before anything was injected:\n%s", strings.Join(before, "\n"))
	}
	injected := []struct{ file, text, want string }{
		{"core/internal/hidden/http.go", "package hidden\n\nimport _ \"expvar\"\n", ""},
		{"core/hiding/http.go", "package hiding\n\nimport _ \"" + root + "core/internal/hidden\"\n", "core/hiding: links net/http, directly or through others"},
		{"console/suites/x.go", "package suites\n\nimport _ \"" + root + "conformance/storetest\"\n", "console/suites: links testing, directly or through others"},
		{"store/forgotten/go.mod", "module " + root + "store/forgotten\n\ngo 1.25.0\n", "store/forgotten: is a module that is not in go.work"},
		{
			"console/injected/x.go", "package injected\n\nimport _ \"" + root + "conformance\"\n",
			"CONTRIBUTING.md: the picture does not lead from console to conformance, but console/injected imports conformance",
		},
	}
	for _, i := range injected {
		tree.Write(t, dir, i.file, i.text)
	}
	after := violations()
	for _, i := range injected {
		if i.want != "" && !slices.Contains(after, i.want) {
			t.Errorf("not found: %s\nin:\n%s", i.want, strings.Join(after, "\n"))
		}
	}
}

func TestUnfinishedRunIsNotAPass(t *testing.T) {
	t.Parallel()
	for _, folders := range [][]string{nil, {"core"}} {
		if _, err := check(t.Context(), t.TempDir(), "go.work", folders); err == nil {
			t.Errorf("check of %q in an empty folder passes", folders)
		}
	}
}

func TestRulesOfAModule(t *testing.T) {
	t.Parallel()
	const gin, echo = "github.com/gin-gonic/gin", "github.com/labstack/echo/v4"
	adapter := module{path: "adapters/gin", inside: true, goVersion: "1.25.0", direct: []string{gin}, versions: map[string]string{gin: "v1.10.0"}}
	for _, row := range []struct {
		name  string
		spoil func(*module)
		want  string // the only violation; empty for none
	}{
		{"the oldest framework", func(*module) {}, ""},
		{"a newer one", func(m *module) { m.versions[gin] = "v1.12.0" }, "requires " + gin + " v1.12.0, want v1.10.0 as the published modules: the tests run on the oldest"},
		{"a newer one outside of go.work", func(m *module) { m.versions[gin], m.inside = "v1.12.0", false }, ""},
		{"two frameworks", func(m *module) { m.direct = append(m.direct, echo) }, "requires " + gin + " and " + echo + ": one framework a module, so that one that is refused takes down only itself"},
		{"a newer language than it needs", func(m *module) { m.goVersion = "1.26.8" }, "go 1.26.8, want one of 1.25.0, 1.26.0"},
		{"a toolchain", func(m *module) { m.toolchain = "go1.26.8" }, "toolchain go1.26.8: consumers choose their own"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			m := module{path: "lab/gin", inside: true, goVersion: "1.26.0", direct: []string{gin}, versions: map[string]string{gin: "v1.10.0"}}
			row.spoil(&m)
			var want []string
			if row.want != "" {
				want = []string{"lab/gin/go.mod: " + row.want}
			}
			if got := checkModules([]module{adapter, m}); !slices.Equal(got, want) {
				t.Errorf("violations %q, want %q", got, want)
			}
		})
	}
}

func TestNewestWorkspaceHasEveryModule(t *testing.T) {
	t.Parallel()
	dir := tree.Copy(t)
	tree.Write(t, dir, newest, "go 1.26.0\n\nuse .\n")
	_, bad, err := loadModules(t.Context(), dir)
	if want := "core: is in go.work and not in " + newest; err != nil || !slices.Contains(bad, want) {
		t.Errorf("violations %q, %v, want %q", bad, err, want)
	}
}
