package main

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/reprise-go/reprise/tools/internal/tree"
)

// newProject returns the folder of a small project under git: core, an adapter that
// requires it, an internal module, and one that is not published. Everything is committed
// and can be released as v0.1.0.
func newProject(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"LICENSE":      "Do as you like.\n",
		"CHANGELOG.md": "# Changelog\n\n## [0.1.0] - 2026-11-22\n\n### Added\n\n- Everything.\n",
		"go.work":      "go 1.25.0\n\nuse (\n\t./core\n\t./lab\n\t./adapters/internal\n\t./adapters/nethttp\n)\n",

		"core/go.mod":          "module " + prefix + "core\n\ngo 1.25.0\n",
		"core/README.md":       "# core\n\n    go get " + prefix + "core\n\nSee [all](https://" + prefix + "blob/main/CHANGELOG.md).\n",
		"core/core.go":         "// Package core has an answer.\npackage core\n\n// Answer is known.\nfunc Answer() int { return 42 }\n",
		"core/example_test.go": example("core", "core.Answer()", "42"),

		"adapters/nethttp/go.mod":          adapterMod(""),
		"adapters/nethttp/README.md":       "# nethttp\n\n    go get " + prefix + "adapters/nethttp\n",
		"adapters/nethttp/nethttp.go":      "// Package nethttp asks core.\npackage nethttp\n\nimport \"" + prefix + "core\"\n\n// Ask asks.\nfunc Ask() int { return core.Answer() }\n",
		"adapters/nethttp/example_test.go": example("adapters/nethttp", "nethttp.Ask()", "42"),

		"adapters/internal/go.mod":           strings.ReplaceAll(adapterMod(""), "nethttp", "internal"),
		"adapters/internal/shared/shared.go": "package shared\n\nimport _ \"" + prefix + "core\"\n",

		"lab/go.mod": "module " + prefix + "lab\n\ngo 1.25.0\n\nrequire " + prefix + "adapters/nethttp v0.0.0\n\nrequire " + prefix + "core v0.0.0 // indirect\n\n" +
			"replace (\n\t" + prefix + "core => ../core\n\t" + prefix + "adapters/nethttp => ../adapters/nethttp\n)\n",
		"lab/lab.go": "package lab\n\nimport _ \"" + prefix + "adapters/nethttp\"\n",
	} {
		tree.Write(t, dir, name, text)
	}
	git(t, dir, "init", "--quiet", "--initial-branch=main")
	git(t, dir, "config", "user.name", "releaser")
	git(t, dir, "config", "user.email", "releaser@example.invalid")
	commit(t, dir)
	return dir
}

// adapterMod returns the go.mod of the adapter, with a comment behind its requirement.
func adapterMod(comment string) string {
	return "module " + prefix + "adapters/nethttp\n\ngo 1.25.0\n\nrequire " + prefix + "core v0.0.0" + comment + "\n\nreplace " + prefix + "core => ../../core\n"
}

func example(folder, call, output string) string {
	name := folder[strings.LastIndexByte(folder, '/')+1:]
	return "package " + name + "_test\n\nimport (\n\t\"fmt\"\n\n\t\"" + prefix + folder + "\"\n)\n\nfunc Example() {\n\tfmt.Println(" + call + ")\n\t// Output: " + output + "\n}\n"
}

// commit commits everything in a project.
func commit(t *testing.T, dir string) {
	t.Helper()
	git(t, dir, "add", "--all")
	git(t, dir, "commit", "--quiet", "--allow-empty", "--message", "a commit")
}

// git runs git and returns its output without the newline at the end.
func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", args...)
	cmd.Dir, cmd.Env = dir, append(environment(), "GIT_CONFIG_GLOBAL="+os.DevNull)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSuffix(string(out), "\n")
}

// begin returns a release of the project in dir that has taken no step.
func begin(t *testing.T, dir, version string, dry bool) *release {
	t.Helper()
	r, err := newRelease(io.Discard, dir, version, dry)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(r.work); err != nil {
			t.Error(err)
		}
	})
	return r
}

// prepared takes the steps of a release before its use.
func (r *release) prepared(t *testing.T) error {
	t.Helper()
	return r.steps(t.Context(), r.copy, r.check, r.checkAPI, r.prepare, r.checkTags, r.checkTidy)
}

func read(t *testing.T, dir, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
