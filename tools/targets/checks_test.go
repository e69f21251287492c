package targets_test

import (
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/reprise-go/reprise/tools/internal/tree"
)

// The workspace makes every module's requirements visible to every other; only alone does
// a module show a missing one.
func TestIsolatedFindsAnImportThatTheWorkspaceHides(t *testing.T) {
	t.Parallel()
	dir := tree.Copy(t)
	tree.Write(t, dir, "adapters/nethttp/internal/injected/injected.go", "package injected\n\nimport _ \"github.com/jackc/pgx/v5\"\n")

	if out, ok := tree.Run(t, dir, nil, "go", "build", "./adapters/nethttp/internal/injected"); !ok {
		t.Fatalf("the workspace does not hide the import, so this test shows nothing:\n%s", out)
	}
	out, ok := tree.Run(t, dir, nil, "make", "isolated", "MODULES=adapters/nethttp")
	if ok || !strings.Contains(out, "no required module provides package github.com/jackc/pgx/v5") {
		t.Errorf("make isolated passed=%t, want a failure that names the package:\n%s", ok, out)
	}
}

func TestIsolatedFindsATestThatDoesNotCompile(t *testing.T) {
	t.Parallel()
	dir := small(t, map[string]string{"core/core_test.go": "package core\n\nvar _ int = Missing\n"})
	fails(t, dir, "undefined: Missing", "isolated")
}

func TestAFailureInAnyModuleFailsTheTarget(t *testing.T) {
	t.Parallel()
	for _, broken := range []string{"core", "store/redis"} { // the first and the last
		t.Run(broken, func(t *testing.T) {
			t.Parallel()
			dir := small(t, map[string]string{broken + "/broken.go": "package " + path.Base(broken) + "; var _ int = \"\"\n"})
			out := fails(t, dir, "isolated failed in: "+broken, "isolated")
			if strings.Count(out, "failed in:") != 1 {
				t.Errorf("more than one summary:\n%s", out)
			}
			fails(t, dir, "cannot use", "build")
		})
	}
}

func TestAHealthyTreePasses(t *testing.T) {
	t.Parallel()
	dir := small(t, nil)
	for _, target := range []string{"build", "isolated", "race"} {
		if out, ok := tree.Run(t, dir, nil, "make", target); !ok {
			t.Errorf("make %s failed:\n%s", target, out)
		}
	}
}

func TestTidyFindsARequirementThatNothingNeeds(t *testing.T) {
	t.Parallel()
	dir := small(t, map[string]string{"store/redis/redis.go": "package redis\n"})
	fails(t, dir, "-require "+root+"core v0.0.0", "tidy")
}

func TestFmtCheckFindsBothFormatters(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ formatter, source string }{
		{"gofumpt", "package core\n\nfunc f() {\n\n\t_ = 1\n}\n"},
		{"goimports", "package core\n\nimport \"os\"\n"},
	} {
		t.Run(row.formatter, func(t *testing.T) {
			t.Parallel()
			dir := small(t, map[string]string{"core/odd.go": row.source})
			if err := os.Symlink(filepath.Join(tree.Root(t), ".bin"), filepath.Join(dir, ".bin")); err != nil {
				t.Fatal(err)
			}
			// -o: the project's programs are up to date.
			fails(t, dir, "core/odd.go", "-o", ".bin/gofumpt", "-o", ".bin/goimports", "fmt/check")
		})
	}
}

// A finding in the workspace, or in a module outside of it, fails the target although the
// rest is clean. MODULES selects from both.
func TestLintFindsBoth(t *testing.T) {
	t.Parallel()
	dir := small(t, map[string]string{".bin/golangci-lint": "#!/bin/sh\n[ \"${GOWORK:-on}\" = off ] && where=outside || where=workspace\n" +
		"echo \"lints the $where: $*\"\n[ $where != \"$BROKEN\" ] || { echo \"found in the $where\"; exit 1; }\n"})
	if err := os.Chmod(filepath.Join(dir, ".bin", "golangci-lint"), 0o755); err != nil {
		t.Fatal(err)
	}
	lint := []string{"-o", ".bin/golangci-lint", "lint"}
	for _, broken := range []string{"workspace", "outside", "nowhere"} {
		out, ok := tree.Run(t, dir, []string{"BROKEN=" + broken}, "make", lint...)
		if ok != (broken == "nowhere") || ok == strings.Contains(out, "found in the "+broken) {
			t.Errorf("broken %s, make lint passed=%t:\n%s", broken, ok, out)
		}
	}
	for modules, want := range map[string]string{
		"core": "lints the workspace: run ./core/...\n", "tools": "lints the outside: run ./...\n",
	} {
		if out, ok := tree.Run(t, dir, nil, "make", append(lint, "MODULES="+modules)...); !ok || out != want {
			t.Errorf("make lint MODULES=%s passed=%t and printed %q, want %q", modules, ok, out, want)
		}
	}
	fails(t, dir, "MODULES names cor, which is not the folder of a module", append(lint, "MODULES=cor")...)
}

func TestAWorkspaceWithoutModulesIsNotAPass(t *testing.T) {
	t.Parallel()
	dir := tree.Small(t, map[string]string{"go.work": "go 1.26.0\n", "tools/go.mod": "module " + root + "tools\n\ngo 1.26.0\n"})
	for _, target := range []string{"build", "isolated", "race", "tidy"} {
		fails(t, dir, "no modules were found in go.work", target)
	}
}

const root = "github.com/reprise-go/reprise/"

// small returns a tree of two modules, the second of which needs the first, with more
// files.
func small(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := tree.Small(t, map[string]string{
		"go.work":              "go 1.26.0\n\nuse (\n\t./core\n\t./store/redis\n)\n",
		"core/go.mod":          "module " + root + "core\n\ngo 1.25.0\n",
		"core/core.go":         "package core\n",
		"core/ok_test.go":      "package core\n\nimport \"testing\"\n\nfunc TestOK(*testing.T) {}\n",
		"store/redis/go.mod":   "module " + root + "store/redis\n\ngo 1.25.0\n\nrequire " + root + "core v0.0.0\n\nreplace " + root + "core => ../../core\n",
		"store/redis/redis.go": "package redis\n\nimport _ \"" + root + "core\"\n",
		"tools/go.mod":         "module " + root + "tools\n\ngo 1.26.0\n",
		"tools/go.sum":         "",
		"tools/tools.go":       "package tools\n",
	})
	for path, text := range files {
		tree.Write(t, dir, path, text)
	}
	return dir
}

// fails runs make with args and wants it to fail with a text in its output, which it
// returns.
func fails(t *testing.T, dir, want string, args ...string) string {
	t.Helper()
	out, ok := tree.Run(t, dir, nil, "make", args...)
	if ok || !strings.Contains(out, want) {
		t.Errorf("make %s passed=%t, want a failure with %q:\n%s", strings.Join(args, " "), ok, want, out)
	}
	return out
}
