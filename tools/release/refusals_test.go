package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/reprise-go/reprise/tools/internal/tree"
)

func TestReleaseRefuses(t *testing.T) {
	t.Parallel()
	write := func(name, text string) func(*testing.T, string) {
		return func(t *testing.T, dir string) { t.Helper(); tree.Write(t, dir, name, text) }
	}
	remove := func(name string) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			t.Helper()
			if err := os.Remove(filepath.Join(dir, filepath.FromSlash(name))); err != nil {
				t.Fatal(err)
			}
		}
	}
	tag := func(name string) func(*testing.T, string) {
		return func(t *testing.T, dir string) { t.Helper(); git(t, dir, "tag", name) }
	}
	for name, row := range map[string]struct {
		spoil   func(t *testing.T, dir string)
		version string // v0.1.0 if empty
		want    string
	}{
		"a version that is not semantic":       {version: "0.1.0", want: `"0.1.0" is not a semantic version such as v0.1.0`},
		"a version that is not complete":       {version: "v0.1", want: `"v0.1" is not a semantic version such as v0.1.0`},
		"a version with metadata of its build": {version: "v0.1.0+linux", want: `"v0.1.0+linux" is not a semantic version such as v0.1.0`},
		"a second major version":               {version: "v2.0.0", want: "v2.0.0 needs module paths that end in /v2"},
		"a tag that exists":                    {tag("adapters/nethttp/v0.1.0"), "", "the tag adapters/nethttp/v0.1.0 exists: a version is released once"},
		"an older version":                     {tag("core/v0.2.0"), "v0.1.1", "v0.1.1 is older than v0.2.0, the last release"},

		"an entry that is not named":   {write("CHANGELOG.md", "# Changelog\n\n## [Unreleased]\n\n- Something.\n"), "", "CHANGELOG.md has no entry for v0.1.0: its first section is [Unreleased]"},
		"an entry of another version":  {version: "v0.1.1", want: "CHANGELOG.md has no entry for v0.1.1: its first section is [0.1.0]"},
		"an entry without a date":      {write("CHANGELOG.md", "# Changelog\n\n## [0.1.0]\n\n- Something.\n"), "", "CHANGELOG.md has no date in the heading of v0.1.0"},
		"an empty entry":               {write("CHANGELOG.md", "# Changelog\n\n## [0.1.0] - 2026-11-22\n\n### Added\n\n## [0.0.9] - 2026-10-01\n\n- Something.\n"), "", "CHANGELOG.md has no entry for v0.1.0: its section is empty"},
		"a module without a README":    {remove("adapters/nethttp/README.md"), "", "adapters/nethttp has no README.md"},
		"a README without a command":   {write("core/README.md", "# core\n"), "", `core has a README.md without "go get ` + prefix + `core"`},
		"a relative link":              {write("core/README.md", "go get "+prefix+"core\n\n[all](../CHANGELOG.md)\n"), "", "core has a README.md with the link ../CHANGELOG.md, which leads nowhere on pkg.go.dev"},
		"a link to nothing":            {write("core/README.md", "go get "+prefix+"core\n\n[all]: https://"+prefix+"blob/main/NEWS.md#top\n"), "", "blob/main/NEWS.md#top, which leads nowhere on pkg.go.dev"},
		"a package without a comment":  {write("core/core.go", "package core\n\nfunc Answer() int { return 42 }\n"), "", "core has no package comment"},
		"a module without an example":  {remove("adapters/nethttp/example_test.go"), "", "adapters/nethttp has no Example whose output is checked"},
		"an example that does not run": {write("core/example_test.go", "package core_test\n\nfunc Example() {}\n"), "", "core has no Example whose output is checked"},
		"a project without a license":  {remove("LICENSE"), "", prefix + "core@v0.1.0 has no LICENSE in its zip"},
		"a replacement of others":      {write("core/go.mod", "module "+prefix+"core\n\ngo 1.25.0\n\nreplace example.com/x => ../x\n"), "", "core/go.mod replaces example.com/x: consumers of the module do not get the replacement"},
		"a go.mod that is not tidy":    {write("adapters/nethttp/go.mod", adapterMod(" // indirect")), "", "adapters/nethttp/go.mod is not tidy: run make tidy/fix"},
		"a go.mod of another path":     {write("core/go.mod", "module example.com/core\n\ngo 1.25.0\n"), "", "core/go.mod does not name the module " + prefix + "core"},
		"a committer without a name":   {func(t *testing.T, dir string) { t.Helper(); git(t, dir, "config", "user.email", "") }, "", "git does not know who releases: git config user.email"},
		"a folder that is not under git": {func(t *testing.T, dir string) {
			t.Helper()
			if err := os.RemoveAll(filepath.Join(dir, ".git")); err != nil {
				t.Fatal(err)
			}
		}, "", "is not the root of a git repository"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := newProject(t)
			if row.spoil != nil {
				row.spoil(t, dir)
			}
			if _, err := os.Stat(filepath.Join(dir, ".git")); err == nil && name != "a committer without a name" {
				commit(t, dir)
			}
			version := row.version
			if version == "" {
				version = "v0.1.0"
			}
			wantRefusal(t, begin(t, dir, version, false).prepared(t), row.want)
		})
	}
}

func TestReleaseRefusesADirtyTree(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{"core/new.go": "package core\n", "core/core.go": "// Package core is new.\npackage core\n"} {
		dir := newProject(t)
		tree.Write(t, dir, name, text)
		wantRefusal(t, begin(t, dir, "v0.1.0", false).prepared(t), "the tree is dirty: commit or stash the changes that git status shows")
	}
}

func TestReleaseWantsAVersion(t *testing.T) {
	t.Parallel()
	_, err := newRelease(t.Output(), ".", "", false)
	wantRefusal(t, err, "VERSION is missing: make release VERSION=v0.1.0")
}

// Each reason is printed, not only the first.
func TestRefusalNamesEveryReason(t *testing.T) {
	t.Parallel()
	dir := newProject(t)
	for _, name := range []string{"core/README.md", "core/example_test.go", "CHANGELOG.md"} {
		tree.Write(t, dir, name, "package core_test\n")
	}
	err := begin(t, dir, "0.1", false).prepared(t)
	for _, want := range []string{"the tree is dirty", "is not a semantic version", "CHANGELOG.md has no entry", "core has a README.md without", "core has no Example"} {
		wantRefusal(t, err, want)
	}
}

func wantRefusal(t *testing.T, err error, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), "refused: ") || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want a refusal with %q", err, want)
	}
	if !errors.As(err, new(refusal)) || exitCode(err) != 1 {
		t.Errorf("exit code %d of %v, want 1", exitCode(err), err)
	}
}
