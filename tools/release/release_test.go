package main

import (
	"strings"
	"testing"

	gomodule "golang.org/x/mod/module"

	"github.com/reprise-go/reprise/tools/internal/tree"
)

func TestReleaseTagsOneCommitBesideTheBranch(t *testing.T) {
	t.Parallel()
	dir := newProject(t)
	before := git(t, dir, "rev-parse", "HEAD")
	r := begin(t, dir, "v0.1.0", false)
	if err := r.prepared(t); err != nil {
		t.Fatal(err)
	}
	if err := r.finish(t.Context()); err != nil {
		t.Fatal(err)
	}

	if got := git(t, dir, "tag", "--list"); got != "adapters/internal/v0.1.0\nadapters/nethttp/v0.1.0\ncore/v0.1.0" {
		t.Errorf("tags %q, want one of each published module", got)
	}
	if one, two := git(t, dir, "rev-parse", "core/v0.1.0^{commit}"), git(t, dir, "rev-parse", "adapters/nethttp/v0.1.0^{commit}"); one != two {
		t.Errorf("the tags are on %s and %s, want one commit", one, two)
	}
	if got := git(t, dir, "rev-parse", "core/v0.1.0^{commit}^"); got != before {
		t.Errorf("the release is a child of %s, want %s", got, before)
	}
	if got := git(t, dir, "rev-parse", "HEAD") + git(t, dir, "status", "--short"); got != before {
		t.Errorf("the branch is at %s, want %s and a clean tree", got, before)
	}
	if got := git(t, dir, "tag", "--list", "--format=%(taggername) %(contents)", "core/*"); got != "releaser v0.1.0\n\n### Added\n\n- Everything.\n" {
		t.Errorf("the tag says %q, want the entry of the changelog", got)
	}

	mod := git(t, dir, "show", "adapters/nethttp/v0.1.0:adapters/nethttp/go.mod")
	if !strings.HasSuffix(mod, prefix+"core v0.1.0") || strings.Contains(mod, "replace") {
		t.Errorf("the go.mod of the release wants core at v0.1.0 and no replacement:\n%s", mod)
	}
	sum := git(t, dir, "show", "adapters/nethttp/v0.1.0:adapters/nethttp/go.sum")
	if strings.Count(sum, prefix+"core v0.1.0 h1:") != 1 || strings.Count(sum, prefix+"core v0.1.0/go.mod h1:") != 1 {
		t.Errorf("the go.sum of the release wants both hashes of core:\n%s", sum)
	}
	lab := git(t, dir, "show", "core/v0.1.0:lab/go.mod")
	if !strings.Contains(lab, prefix+"core v0.1.0") || !strings.Contains(lab, "core => ../core") {
		t.Errorf("the go.mod of the lab wants core at v0.1.0 and keeps its replacement:\n%s", lab)
	}
}

func TestDryRunLeavesTheProjectAsItIs(t *testing.T) {
	t.Parallel()
	dir := newProject(t)
	tree.Write(t, dir, "core/new.go", "package core\n\n// New is not committed.\nconst New = 1\n")
	state := func() string {
		return git(t, dir, "for-each-ref") + git(t, dir, "status", "--short") + git(t, dir, "count-objects")
	}
	before := state()
	r := begin(t, dir, "v0.1.0", true)
	if err := r.prepared(t); err != nil {
		t.Fatal(err)
	}
	if err := r.finish(t.Context()); err != nil {
		t.Fatal(err)
	}
	if after := state(); after != before {
		t.Errorf("the repository was\n%s\nand is\n%s", before, after)
	}
	if got := git(t, r.clone.dir, "show", "core/v0.1.0:core/new.go"); !strings.Contains(got, "New") {
		t.Errorf("core/new.go is %q, want the file that is not committed", got)
	}
}

func TestDryRunTakesTheEntriesThatAreCollected(t *testing.T) {
	t.Parallel()
	dir := newProject(t)
	tree.Write(t, dir, "CHANGELOG.md", "# Changelog\n\n## [Unreleased]\n\n- Something.\n")
	r := begin(t, dir, "", true)
	if err := r.prepared(t); err != nil || r.version != "v0.1.0" || r.entry != "- Something." {
		t.Errorf("version %s, entry %q, error %v", r.version, r.entry, err)
	}
}

// Right after a release there is no entry for the next one.
func TestDryRunOfAnyVersionNeedsNoEntry(t *testing.T) {
	t.Parallel()
	dir := newProject(t)
	git(t, dir, "tag", "core/v0.1.0")
	r := begin(t, dir, "", true)
	if err := r.prepared(t); err != nil || r.version != "v0.2.0" {
		t.Errorf("version %s, error %v", r.version, err)
	}
}

func TestDryRunOfASourceArchive(t *testing.T) {
	t.Parallel()
	dir := newProject(t)
	git(t, dir, "config", "core.bare", "true") // git finds no tree here, as above a folder that is not its own
	if err := begin(t, dir, "v0.1.0", true).prepared(t); err != nil {
		t.Error(err)
	}
}

func TestReleaseLeavesNothingOut(t *testing.T) {
	t.Parallel()
	r := begin(t, newProject(t), "v0.1.0", false)
	if err := r.copy(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.leftOut = []string{"adapters/fiber: the module proxy refuses github.com/gofiber/fiber"}
	wantRefusal(t, r.finish(t.Context()), "a release leaves nothing out")
}

// The go command packs the modules itself, so a hash that it does not compute is found.
func TestWrongHashIsFound(t *testing.T) {
	t.Parallel()
	r := begin(t, newProject(t), "v0.1.0", true)
	if err := r.steps(t.Context(), r.copy, r.check, r.prepare, r.checkTags); err != nil {
		t.Fatal(err)
	}
	core := gomodule.Version{Path: prefix + "core", Version: "v0.1.0"}
	right := r.proxy.sums[core]
	r.proxy.sums[core] = strings.ToLower(right)
	if err := r.checkTags(t.Context()); err == nil || !strings.Contains(err.Error(), "packs "+core.String()+" with the hashes "+right) {
		t.Errorf("error %v, want the hash that the go command computes", err)
	}
}
