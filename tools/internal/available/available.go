// Package available finds out which modules the module proxy serves, and what can be
// built and tested with those.
//
// A proxy may refuse a module: a withdrawn release, one with a known vulnerability, a
// company's policy. The go command then loads nothing at all, because it reads the go.mod
// of every module in the graph before it looks at a package. [Look] writes a workspace in
// which an empty module stands for every refused one, so that the graph loads, and lists
// the packages that are left.
package available

import (
	"context"
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Root is the path that every module of the project starts with.
const Root = "github.com/reprise-go/reprise/"

// A Refusal is a module that the proxy does not serve.
type Refusal struct {
	Module, Version string
	Answer          string // what the proxy said
}

// String names the module and what the proxy answered, without the address that was
// asked.
func (r Refusal) String() string {
	_, said, found := strings.Cut(r.Answer, ": ")
	if !found {
		said = r.Answer
	}
	return r.Module + " " + r.Version + " (" + said + ")"
}

// A Result says what can be built and tested. The zero value of everything but Modules
// means that the proxy serves all.
type Result struct {
	// Modules are the folders of the workspace, such as "adapters/gin".
	Modules []string

	// Refused are the modules that the proxy does not serve, sorted.
	Refused []Refusal

	// Frameworks are the adapters that cannot be built: "fiber" for adapters/fiber. Binaries
	// that serve several are built with the tags of Tags instead.
	Frameworks []string

	// Packages are the folders whose packages and tests can be built; LeftOut are the
	// others. TestsOnly are those of Packages that have no code besides tests.
	Packages, LeftOut, TestsOnly []string

	// NotAlone are the modules whose graph does not load without the workspace: what the
	// targets with GOWORK=off leave out. Modules outside the workspace are among them.
	NotAlone []string

	// Workspace is the go.work file in which the graph loads: the project's own if the proxy
	// serves everything.
	Workspace string
}

// Served reports whether the proxy serves everything.
func (r *Result) Served() bool { return len(r.Refused) == 0 }

// Tags are the build tags that leave out the frameworks.
func (r *Result) Tags() []string {
	var tags []string
	for _, name := range r.Frameworks {
		tags = append(tags, "without_"+name)
	}
	return tags
}

// Look asks the proxy for every requirement of the modules in a workspace of the project
// at dir, such as "go.work", and of those in the folders outside, which are not part of
// it. What stands for refused modules goes to the folder out.
func Look(ctx context.Context, dir, work, out string, outside ...string) (*Result, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if out, err = filepath.Abs(out); err != nil {
		return nil, err
	}
	l := &looking{dir: dir, file: filepath.Join(dir, filepath.FromSlash(work)), out: out}
	if l.workspace, err = readWorkspace(ctx, dir, l.file); err != nil {
		return nil, err
	}
	required, err := requirements(ctx, dir, slices.Concat(l.workspace.modules, outside), l.workspace.replaced)
	if err != nil {
		return nil, err
	}
	if l.refused, err = download(ctx, required); err != nil {
		return nil, err
	}
	r := &Result{Modules: l.workspace.modules, Workspace: l.file}
	packages, err := l.load(ctx)
	if err != nil {
		return nil, err
	}
	if len(l.refused) == 0 {
		return r, nil
	}
	r.Frameworks = frameworks(packages)
	if packages, err = l.load(ctx, r.Tags()...); err != nil {
		return nil, err
	}
	for _, folder := range slices.Sorted(maps.Keys(packages)) {
		p := packages[folder]
		if !p.whole {
			r.LeftOut = append(r.LeftOut, folder)
			continue
		}
		r.Packages = append(r.Packages, folder)
		if !p.code {
			r.TestsOnly = append(r.TestsOnly, folder)
		}
	}
	if r.NotAlone, err = l.notAlone(ctx, required); err != nil {
		return nil, err
	}
	r.Refused = slices.SortedFunc(maps.Values(l.refused), func(a, b Refusal) int {
		return strings.Compare(a.Module+"@"+a.Version, b.Module+"@"+b.Version)
	})
	r.Workspace = filepath.Join(out, "go.work")
	return r, nil
}

// Require returns an error if a framework in list, which is written as in
// REPRISE_TEST_REQUIRE, is left out.
func (r *Result) Require(list string) error {
	for name := range strings.SplitSeq(list, ",") {
		if name = strings.TrimSpace(name); slices.Contains(r.Frameworks, name) {
			return fmt.Errorf("REPRISE_TEST_REQUIRE names %s, which cannot be tested: %s", name, r.Summary())
		}
	}
	return nil
}

// Parts names what is left out, each part with a heading.
func (r *Result) Parts(yield func(heading string, what []string) bool) {
	for _, part := range []struct {
		heading string
		what    []string
	}{
		{"columns not tested", r.Frameworks},
		{"packages neither built nor tested", r.LeftOut},
		{"modules not checked on their own", r.NotAlone},
	} {
		if len(part.what) > 0 && !yield(part.heading, part.what) {
			return
		}
	}
}

// Summary says in one line what the proxy refused and what is therefore left out.
func (r *Result) Summary() string {
	var refused []string
	for _, f := range r.Refused {
		refused = append(refused, f.String())
	}
	parts := []string{"the module proxy refused " + strings.Join(refused, ", ")}
	for heading, what := range r.Parts {
		parts = append(parts, heading+": "+strings.Join(what, ", "))
	}
	return strings.Join(parts, "; ")
}

// frameworks returns the names of the adapters that cannot be built.
func frameworks(packages map[string]state) []string {
	var names []string
	for folder, p := range packages {
		if parent, name := path.Split(folder); parent == "adapters/" && !p.whole {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
